// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package controlplane

import "os/exec"

// spawn leaves it to the watchdog to kill the command if this process dies.
func Spawn(cmd *exec.Cmd) error { return cmd.Start() }
