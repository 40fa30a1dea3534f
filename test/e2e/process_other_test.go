// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package e2e

import "os/exec"

func spawn(cmd *exec.Cmd) error { return cmd.Start() }
