// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package render

import (
	"errors"
	"syscall"
)

// childAttributes: outside Linux a worker notices the end of its parent by its closed stdin.
func childAttributes() *syscall.SysProcAttr { return nil }

// enterSandbox: outside Linux, where Chandler is only developed, the worker watches its memory itself.
func enterSandbox(int64) error { return nil }

// WhyUnfiltered returns why render workers may make all system calls.
func WhyUnfiltered() error { return errors.New("seccomp is a part of Linux") }

// ProtectMemory does nothing outside of Linux, where Chandler is only developed.
func ProtectMemory() error { return nil }
