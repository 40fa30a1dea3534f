// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// spawn starts the command so that it ends with this process, however that
// ends: "parent death" is that of the thread that forked, so one thread, which
// lives as long as the process, starts all.
func spawn(cmd *exec.Cmd) error {
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	started := make(chan error)
	spawner() <- func() { started <- cmd.Start() }
	return <-started
}

var spawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})
