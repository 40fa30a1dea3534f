// SPDX-License-Identifier: Apache-2.0

package e2e

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

// stopTimeout is how long a manager may take to end by itself.
const stopTimeout = 30 * time.Second

// logTailSize is how much of a manager's log a failed test shows.
const logTailSize = 6 << 10

// manager is a running process of the binary under test.
type manager struct {
	t       *testing.T
	log     string
	metrics string // URL
	cmd     *exec.Cmd
	killed  atomic.Bool
	done    chan struct{} // closed at the exit
}

// launch starts the binary with a kubeconfig. Health and webhooks are off, and
// metrics are served in the clear on loopback, unless the flags say otherwise.
func launch(t *testing.T, logName string, kubeconfig []byte, flags ...string) *manager {
	t.Helper()
	return launchIn(t, nil, logName, kubeconfig, flags...)
}

// launchIn does that with more environment variables.
func launchIn(t *testing.T, environment []string, logName string, kubeconfig []byte, flags ...string) *manager {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	logDir := dir
	if keep := os.Getenv("CHANDLER_E2E_LOGS"); keep != "" {
		logDir = keep
	}
	metrics := freeAddress(t)
	m := &manager{t: t, log: filepath.Join(logDir, logName+".log"), metrics: "http://" + metrics + "/metrics", done: make(chan struct{})}
	log, err := os.Create(m.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	m.cmd = exec.Command(world.binary, append([]string{
		"--health-addr=0", "--webhook-port=0", "--allow-loopback", "--render-workers=1",
		"--diagnostics-address=" + metrics, "--insecure-diagnostics",
	}, flags...)...)
	m.cmd.Env = append([]string{"KUBECONFIG=" + file, "HOME=" + dir, "TMPDIR=" + dir, "PATH=" + os.Getenv("PATH")}, environment...)
	m.cmd.Dir = dir
	m.cmd.Stdout, m.cmd.Stderr = log, log
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := controlplane.Spawn(m.cmd); err != nil {
		t.Fatalf("starting the manager: %v", err)
	}
	go func() {
		_ = m.cmd.Wait() // how it ended is looked up in cmd.ProcessState
		close(m.done)
	}()
	t.Cleanup(m.cleanUp)
	return m
}

// kill ends the process as a power failure would.
func (m *manager) kill() {
	m.killed.Store(true)
	_ = m.cmd.Process.Kill() // fails only if it has ended already
	<-m.done
}

// stopManager ends the manager as a kubelet would.
func (tn *tenant) stopManager() {
	tn.t.Helper()
	m := tn.manager
	m.killed.Store(true)
	_ = m.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-m.done:
	case <-time.After(stopTimeout):
		tn.t.Errorf("the manager didn't end within %s of SIGTERM: a rollout would hang", stopTimeout)
		m.kill()
	}
}

var crashed = regexp.MustCompile(`(?m)^(panic:|fatal error:|WARNING: DATA RACE)|Observed a panic`)

// cleanUp ends what is left of the process, and fails the test if it went wrong
// in a way that no test expects.
func (m *manager) cleanUp() {
	select {
	case <-m.done:
		if !m.killed.Load() {
			m.t.Errorf("the manager ended by itself: %s\n%s", m.cmd.ProcessState, m.tail())
		}
	default:
		m.kill()
	}
	_ = syscall.Kill(-m.cmd.Process.Pid, syscall.SIGKILL) // its render workers, if it left any
	data, err := os.ReadFile(m.log)
	if err != nil {
		m.t.Error(err)
		return
	}
	if at := crashed.FindIndex(data); at != nil {
		m.t.Errorf("the manager panicked:\n%s", data[at[0]:min(len(data), at[0]+logTailSize)])
	}
}

// tail is the end of the log.
func (m *manager) tail() []byte {
	data, err := os.ReadFile(m.log)
	if err != nil {
		return []byte(err.Error())
	}
	if len(data) > logTailSize {
		data = data[len(data)-logTailSize:]
		data = data[bytes.IndexByte(data, '\n')+1:]
	}
	return data
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
