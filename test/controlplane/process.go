// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
)

// tailSize is how much of its log an exited component's error shows.
const tailSize = 4 << 10

// process is a running component.
type process struct {
	name    string
	cmd     *exec.Cmd
	log     string
	killed  atomic.Bool
	done    chan struct{} // closed at the exit
	exitErr error         // to be read after done
}

// startProcess starts the binary in the process group, or in a new one if that is 0. It knows nothing of this
// process's environment but the PATH, so that no proxy or kubeconfig of the developer's changes what it does.
func startProcess(binary string, args []string, home, logDir string, group int) (*process, error) {
	p := &process{name: filepath.Base(binary), done: make(chan struct{})}
	p.log = filepath.Join(logDir, p.name+".log")
	if err := os.MkdirAll(logDir, 0o755); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd = exec.Command(binary, args...)
	p.cmd.Dir = home
	p.cmd.Env = []string{"HOME=" + home, "TMPDIR=" + home, "PATH=" + os.Getenv("PATH")}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	// A group of its own keeps the terminal's Ctrl-C from it: this process decides when a component ends.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: group}
	if err := Spawn(p.cmd); err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.name, err)
	}
	go func() {
		p.exitErr = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// kill ends the process, also a paused one, and returns when it is gone.
func (p *process) kill() {
	p.killed.Store(true)
	_ = p.cmd.Process.Kill() // fails only if it has exited already
	<-p.done
}

func (p *process) signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("sending %s to %s: %w", s, p.name, err)
	}
	return nil
}

// exited returns an error, with the end of its log, if the process ended without having been killed.
func (p *process) exited() error {
	select {
	case <-p.done:
	default:
		return nil
	}
	if p.killed.Load() {
		return nil
	}
	err := p.exitErr
	if err == nil {
		err = errors.New("exit status 0")
	}
	return fmt.Errorf("%s ended: %w; the end of its log:\n%s", p.name, err, tail(p.log))
}

func tail(path string) []byte {
	data, err := os.ReadFile(path)
	if err != nil {
		return []byte(err.Error())
	}
	if len(data) > tailSize {
		data = data[len(data)-tailSize:]
		data = data[bytes.IndexByte(data, '\n')+1:]
	}
	return bytes.TrimSpace(data)
}
