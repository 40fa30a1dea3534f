// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/process"
	"github.com/cluster-chandler/chandler/test/wait"
)

// grace is how long a manager may take to end by itself: less than a pod's grace period.
const grace = 30 * time.Second

// Options say what to start.
type Options struct {
	// Name of the process, in what a failed test says, and of its log. Defaults to "manager".
	Name string
	// Binary is the path of what Build made.
	Binary string
	// Kubeconfig leads to the management cluster.
	Kubeconfig []byte
	// Args of the program.
	Args []string
	// Env is what it knows of the environment besides where its files are.
	Env []string
	// Home is where it runs, and keeps what it stores. By default it goes away with the test.
	Home string
	// LogDir is the folder of its log. Defaults to Home.
	LogDir string
}

// Process is a manager, which runs once it has been launched.
type Process struct {
	*process.Process
	// Metrics is the URL of its metrics, if Start started it.
	Metrics string

	t       testing.TB
	options process.Options
}

// Start starts a manager with flags that suit a process on this host. It has no ports of health, webhooks and hooks. Its
// metrics are in the clear on a free port of loopback, and one renderer. Workload clusters may be on loopback, and several
// Clusters may lead to one of them. The options' arguments override these flags.
func Start(t testing.TB, o Options) *Process {
	t.Helper()
	metrics := FreeAddress(t)
	o.Args = append([]string{
		"--health-addr=0", "--webhook-port=0", "--hook-port=0", "--allow-loopback", "--allow-duplicate-clusters", "--render-workers=1",
		"--diagnostics-address=" + metrics, "--insecure-diagnostics",
	}, o.Args...)
	p := New(t, o)
	p.Metrics = "http://" + metrics + "/metrics"
	p.Launch()
	return p
}

// New prepares a manager that has no arguments but the given ones.
func New(t testing.TB, o Options) *Process {
	t.Helper()
	name, home := cmp.Or(o.Name, "manager"), o.Home
	if home == "" {
		home = t.TempDir()
	}
	kubeconfig := filepath.Join(home, "kubeconfig")
	must.Succeed(t, os.WriteFile(kubeconfig, o.Kubeconfig, 0o600))
	log := filepath.Join(cmp.Or(o.LogDir, home), name+".log")
	_ = os.Remove(log) // of an earlier run, if logs are kept
	return &Process{t: t, options: process.Options{
		Name: name, Binary: o.Binary, Args: o.Args, Env: append([]string{"KUBECONFIG=" + kubeconfig}, o.Env...), Home: home, LogFile: log,
	}}
}

// Launch starts the process, which is gone at the end of the test. The test fails if it ended by itself, or panicked.
func (p *Process) Launch() {
	p.t.Helper()
	var err error
	if p.Process, err = process.Start(p.options); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(p.cleanUp)
}

// Stop ends the process as a kubelet would.
func (p *Process) Stop(t testing.TB) {
	t.Helper()
	if err := p.Terminate(grace); err != nil {
		t.Errorf("%v: a rollout would hang", err)
	}
}

// Running fails, for good, if the process has ended.
func (p *Process) Running() error {
	if err := p.Ended(); err != nil {
		return fmt.Errorf("%w: %w", wait.ErrFinal, err)
	}
	return nil
}

var crashed = regexp.MustCompile(`(?m)^(panic:|fatal error:|WARNING: DATA RACE)|Observed a panic`)

// cleanUp ends what is left of the process, and fails the test if it went wrong in a way that no test expects.
func (p *Process) cleanUp() {
	if err := p.EndedByItself(); err != nil {
		p.t.Error(err)
	}
	p.Kill()
	_ = syscall.Kill(-p.PID(), syscall.SIGKILL) // its render workers, if it left any
	log, err := os.ReadFile(p.LogFile)
	if err != nil {
		p.t.Error(err)
		return
	}
	if at := crashed.FindIndex(log); at != nil {
		p.t.Errorf("%s panicked:\n%.6000s", p.Name, log[at[0]:])
	} else if p.t.Failed() {
		p.t.Logf("the end of the log of %s:\n%s", p.Name, p.Tail())
	}
}

// FreeAddress is process.FreeAddress for a test.
func FreeAddress(t testing.TB) string {
	t.Helper()
	address, err := process.FreeAddress()
	must.Succeed(t, err)
	return address
}
