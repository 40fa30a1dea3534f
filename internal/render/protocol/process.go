// SPDX-License-Identifier: Apache-2.0

package protocol

// WorkerEnv marks a process as a render worker; its value is the memory limit in bytes.
const WorkerEnv = "CHANDLER_RENDER_WORKER"

// ExitOutOfMemory is the exit code of a worker that saw its own memory limit passed.
const ExitOutOfMemory = 77
