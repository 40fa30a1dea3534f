// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

import "os/exec"

// spawn leaves it to others to kill the command if this process dies.
func spawn(cmd *exec.Cmd) error { return cmd.Start() }

// waitStopped doesn't wait.
func waitStopped(int) error { return nil }
