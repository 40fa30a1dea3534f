// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/test/controlplane"
)

// stopTimeout is how long a process may take to end by itself: less than a pod's grace period.
const stopTimeout = 30 * time.Second

// logTail is how much of a process's log a failed test shows.
const logTail = 6 << 10

// Options say what to start.
type Options struct {
	// Binary is the path of what Build made.
	Binary string
	// Kubeconfig leads to the management cluster.
	Kubeconfig []byte
	// Log is the file that gets the process's output. By default it goes away with the test.
	Log string
	// Flags follow those that suit a process on this host (no health and webhook ports, metrics in the clear on a free
	// port of loopback, one renderer, workload clusters on loopback), and override them.
	Flags []string
}

// Process is a running manager.
type Process struct {
	// Metrics is the URL of its metrics.
	Metrics string

	t      *testing.T
	log    string
	cmd    *exec.Cmd
	killed atomic.Bool
	done   chan struct{} // closed at the exit
}

// Start starts a manager, which is gone at the end of the test. The test fails if it ended by itself, or panicked.
func Start(t *testing.T, o Options) *Process {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(file, o.Kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	if o.Log == "" {
		o.Log = filepath.Join(dir, "manager.log")
	}
	log, err := os.OpenFile(o.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	metrics := freeAddress(t)
	p := &Process{Metrics: "http://" + metrics + "/metrics", t: t, log: o.Log, done: make(chan struct{})}
	p.cmd = exec.Command(o.Binary, append([]string{
		"--health-addr=0", "--webhook-port=0", "--allow-loopback", "--render-workers=1",
		"--diagnostics-address=" + metrics, "--insecure-diagnostics",
	}, o.Flags...)...)
	p.cmd.Env = []string{"KUBECONFIG=" + file, "HOME=" + dir, "TMPDIR=" + dir, "PATH=" + os.Getenv("PATH")}
	p.cmd.Dir = dir
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := controlplane.Spawn(p.cmd); err != nil {
		t.Fatalf("starting the manager: %v", err)
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is looked up in cmd.ProcessState
		close(p.done)
	}()
	t.Cleanup(p.cleanUp)
	return p
}

// Kill ends the process as a power failure would.
func (p *Process) Kill() {
	p.killed.Store(true)
	_ = p.cmd.Process.Kill() // fails only if it has ended already
	<-p.done
}

// Stop ends the process as a kubelet would.
func (p *Process) Stop() {
	p.t.Helper()
	p.killed.Store(true)
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(stopTimeout):
		p.t.Errorf("the manager didn't end within %s of SIGTERM: a rollout would hang", stopTimeout)
		p.Kill()
	}
}

// Log is the end of the process's output.
func (p *Process) Log() string {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	if len(data) > logTail {
		data = data[len(data)-logTail:]
		data = data[bytes.IndexByte(data, '\n')+1:]
	}
	return string(data)
}

var crashed = regexp.MustCompile(`(?m)^(panic:|fatal error:|WARNING: DATA RACE)|Observed a panic`)

func (p *Process) cleanUp() {
	select {
	case <-p.done:
		if !p.killed.Load() {
			p.t.Errorf("the manager ended by itself: %s\n%s", p.cmd.ProcessState, p.Log())
		}
	default:
		p.Kill()
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // its render workers, if it left any
	data, err := os.ReadFile(p.log)
	if err != nil {
		p.t.Error(err)
		return
	}
	if at := crashed.FindIndex(data); at != nil {
		p.t.Errorf("the manager panicked:\n%s", data[at[0]:min(len(data), at[0]+logTail)])
	} else if p.t.Failed() {
		p.t.Logf("the end of the manager's log:\n%s", p.Log())
	}
}

// freeAddress returns an address on loopback that nothing listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return fmt.Sprint(l.Addr())
}
