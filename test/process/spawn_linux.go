// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// spawn starts the command, whose SysProcAttr is set, so that the kernel kills it if this process dies, even by SIGKILL.
//
// "Parent death" means that of the thread that forked. So one thread, which lives as long as the process, starts all.
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

// waitStopped returns when the child that got SIGSTOP has stopped. WNOWAIT leaves its state to who waits for its end.
func waitStopped(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return err
		}
	}
}
