// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"io"
	"os/exec"
	"syscall"
)

// watchdogScript reads the process group to guard, then waits for the end of its input, which comes when this process
// dies, however it dies. Then it kills the group and removes the directory.
const watchdogScript = `
read -r group && {
	while read -r _; do :; done
	kill -9 "-$group"
}
for _ in 1 2 3 4 5; do
	rm -rf "$1" && exit
	sleep 1
done
`

// watchdog is a shell that outlives this process just long enough to clean up after it.
type watchdog struct {
	cmd   *exec.Cmd
	stdin io.Writer
}

func startWatchdog(dir string) (*watchdog, error) {
	cmd := exec.Command("/bin/sh", "-c", watchdogScript, "chandler-watchdog", dir)
	// Ctrl-C in the terminal must not end it together with this process.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the watchdog: %w", err)
	}
	return &watchdog{cmd: cmd, stdin: stdin}, nil
}

// guard tells which process group to kill.
func (w *watchdog) guard(group int) error {
	if _, err := fmt.Fprintln(w.stdin, group); err != nil {
		return fmt.Errorf("telling the watchdog: %w", err)
	}
	return nil
}

// stop ends the watchdog without its doing anything: by now the group's number may be another's.
func (w *watchdog) stop() {
	if w == nil {
		return
	}
	_ = w.cmd.Process.Kill() // fails only if it has exited already
	_ = w.cmd.Wait()         // reports the kill
}
