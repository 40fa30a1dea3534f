// SPDX-License-Identifier: Apache-2.0

// Package process runs programs beside this one, and ends them: the components of control planes, and managers.
package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync/atomic"
	"syscall"
	"time"
)

// tailSize is how much of a log is shown: little, so that what failed is still found in a log of CI that is cut.
const tailSize = 3 << 10

// routine are lines of a log that tell nothing about a failure: a manager that starts and ends.
var routine = regexp.MustCompile(`(?m)^.*"(Starting |Stopping and waiting |Shutdown signal |All workers |Wait completed).*\n?`)

// Options say what to start.
type Options struct {
	// Name of the process, in errors.
	Name string
	// Binary is the program's path.
	Binary string
	// Args are its arguments.
	Args []string
	// Env is what it knows besides HOME, TMPDIR and PATH: no proxy or kubeconfig of the developer's changes what it does.
	Env []string
	// Home is its working directory, and where it keeps what it stores.
	Home string
	// LogFile gets its output, behind what is there.
	LogFile string
	// Group is the process group to join. By default it has one of its own, which keeps the terminal's Ctrl-C from it.
	Group int
}

// Process is a program that was started. Its methods may be called concurrently.
type Process struct {
	Options

	cmd    *exec.Cmd
	killed atomic.Bool
	done   chan struct{} // closed at the exit
}

// Start starts a program. On Linux it ends with this process, however that does.
func Start(o Options) (*Process, error) {
	if err := os.MkdirAll(filepath.Dir(o.LogFile), 0o755); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(o.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p := &Process{Options: o, cmd: exec.Command(o.Binary, o.Args...), done: make(chan struct{})}
	p.cmd.Dir = o.Home
	p.cmd.Env = append([]string{"HOME=" + o.Home, "TMPDIR=" + o.Home, "PATH=" + os.Getenv("PATH")}, o.Env...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: o.Group}
	if err := spawn(p.cmd); err != nil {
		return nil, fmt.Errorf("starting %s: %w", o.Name, err)
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is looked up in cmd.ProcessState
		close(p.done)
	}()
	return p, nil
}

// PID is the process's number; its group's, too, if it has one of its own.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Signal sends a signal.
func (p *Process) Signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("sending %s to %s: %w", s, p.Name, err)
	}
	return nil
}

// Pause stops the process, and on Linux returns when it has stopped: its threads may run on for a while after the signal.
func (p *Process) Pause() error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	if err := waitStopped(p.PID()); err != nil {
		return fmt.Errorf("waiting until %s has stopped: %w", p.Name, err)
	}
	return nil
}

// Resume ends a pause.
func (p *Process) Resume() error { return p.Signal(syscall.SIGCONT) }

// Kill ends the process, also a paused one, as a power failure would, and returns when it is gone.
func (p *Process) Kill() {
	p.killed.Store(true)
	_ = p.cmd.Process.Kill() // fails only if it has ended already
	<-p.done
}

// Terminate asks the process to end, as a kubelet does. It is killed if it takes longer than the grace period.
func (p *Process) Terminate(grace time.Duration) error {
	p.killed.Store(true)
	_ = p.Signal(syscall.SIGTERM) // fails only if it has ended already
	select {
	case <-p.done:
		return nil
	case <-time.After(grace):
		p.Kill()
		return fmt.Errorf("%s didn't end within %s of SIGTERM", p.Name, grace)
	}
}

// Ended returns how the process ended, with the end of its log; nil while it runs.
func (p *Process) Ended() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s ended: %s; the end of its log:\n%s", p.Name, p.cmd.ProcessState, p.Tail())
	default:
		return nil
	}
}

// EndedByItself returns the same, but nil if the process was killed or asked to end.
func (p *Process) EndedByItself() error {
	if p.killed.Load() {
		return nil
	}
	return p.Ended()
}

// Tail is the end of the log, without what is routine.
func (p *Process) Tail() []byte {
	data, err := os.ReadFile(p.LogFile)
	if err != nil {
		return []byte(err.Error())
	}
	data = routine.ReplaceAll(data, nil)
	if len(data) > tailSize {
		data = data[len(data)-tailSize:]
		data = data[bytes.IndexByte(data, '\n')+1:]
	}
	return bytes.TrimSpace(data)
}

// Says fails unless the log has the text.
func (p *Process) Says(text string) error {
	data, err := os.ReadFile(p.LogFile)
	if err != nil {
		return err
	}
	if !bytes.Contains(data, []byte(text)) {
		return errors.New(p.Name + "'s log doesn't say: " + text)
	}
	return nil
}
