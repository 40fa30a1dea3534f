// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package sandbox

import (
	"errors"
	"syscall"
	"time"
)

// ChildAttributes: outside Linux a worker notices the end of its parent by its closed stdin.
func ChildAttributes() *syscall.SysProcAttr { return nil }

// Enter: outside Linux, where Chandler is only developed, the worker watches its memory itself.
func Enter(int64) error { return nil }

// ProcessorTime isn't known outside of Linux.
func ProcessorTime(int) (time.Duration, bool) { return 0, false }

// WhyUnfiltered returns why render workers may make all system calls.
func WhyUnfiltered() error { return errors.New("seccomp is a part of Linux") }

// ProtectMemory does nothing outside of Linux, where Chandler is only developed.
func ProtectMemory() error { return nil }
