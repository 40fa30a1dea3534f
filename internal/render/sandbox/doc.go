// SPDX-License-Identifier: Apache-2.0

// Package sandbox takes rights from a process: to open files and sockets, to run programs, and to use more memory
// than allowed.
package sandbox
