// SPDX-License-Identifier: Apache-2.0

// Package manager builds Chandler's binary and runs it as processes of their own beside the control planes of
// test/controlplane. It runs the binary as a pod would, with the rights of its ServiceAccount alone.
package manager
