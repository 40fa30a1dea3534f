// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os/exec"
	"syscall"
)

// guardScript reads process groups until the demo is gone, however it went. Then it ends them and removes the directory.
const guardScript = `
groups=
while read -r group; do groups="$groups $group"; done
for group in $groups; do kill -9 "-$group"; done
rm -rf "$1"
`

// guard is a shell that outlives the demo just long enough to clean up after it, should it be killed. The control
// planes have their own.
type guard struct {
	cmd   *exec.Cmd
	stdin io.Writer
}

func startGuard(dir string) (*guard, error) {
	cmd := exec.Command("/bin/sh", "-c", guardScript, "chandler-demo-guard", dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the terminal's Ctrl-C is not for it
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the guard: %w", err)
	}
	return &guard{cmd: cmd, stdin: stdin}, nil
}

func (g *guard) add(group int) error {
	_, err := fmt.Fprintln(g.stdin, group)
	return err
}

// stop ends the guard before it does anything: the groups' numbers may be others' by now.
func (g *guard) stop() {
	if g == nil {
		return
	}
	_ = g.cmd.Process.Kill() // fails only if it has exited already
	_ = g.cmd.Wait()         // reports the kill
}
