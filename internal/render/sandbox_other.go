// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package render

import "syscall"

// childAttributes: outside Linux a worker notices the end of its parent by its closed stdin.
func childAttributes() *syscall.SysProcAttr { return nil }

// enterSandbox: outside Linux, where Chandler is only developed, the worker watches its memory itself.
func enterSandbox(int64) error { return nil }

// ProtectMemory does nothing outside of Linux, where Chandler is only developed.
func ProtectMemory() error { return nil }
