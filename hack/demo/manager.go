// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

const (
	// grace is how long the manager may take to stop.
	grace = 5 * time.Second
	// logLines are shown of the manager's log when something went wrong.
	logLines = 12
)

// manager is the built binary, running as in a pod of the management cluster.
type manager struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{} // closed at its exit
}

// startManager returns when the manager works: when it has looked at the AddonStack. Should it end, fail is called.
func (d *demo) startManager(ctx context.Context, fail context.CancelCauseFunc) error {
	err := d.out.stage("Chandler", func(*progress) (string, error) {
		if err := d.watchManagement(ctx); err != nil {
			return "", err
		}
		if err := d.runManager(); err != nil {
			return "", err
		}
		go func() {
			<-d.manager.done
			fail(errors.New("the manager ended"))
		}()
		if err := d.applyStack(ctx); err != nil {
			return "", err
		}
		return fmt.Sprintf("process %d works on its first AddonStack", d.manager.cmd.Process.Pid), d.waitForStack(ctx)
	})
	if d.manager != nil {
		d.out.printf("    %s\n", d.out.paint(dim, "its log: "+d.manager.log))
	}
	return err
}

func (d *demo) runManager() error {
	kubeconfig := filepath.Join(d.dir, "manager.kubeconfig")
	if err := os.WriteFile(kubeconfig, d.management.Kubeconfig(), 0o600); err != nil {
		return err
	}
	m := &manager{log: filepath.Join(d.dir, "manager.log"), done: make(chan struct{})}
	log, err := os.Create(m.log)
	if err != nil {
		return err
	}
	defer log.Close()
	m.cmd = exec.Command(d.managerBinary(),
		"--artifact-root="+d.charts(),
		"--allow-loopback", // where the workload clusters are
		"--webhook-port=0",
		"--leader-elect=false",
		"--health-addr=0",
		"--diagnostics-address=0",
	)
	m.cmd.Dir = d.dir
	// No proxy or kubeconfig of the developer's.
	m.cmd.Env = []string{"KUBECONFIG=" + kubeconfig, "HOME=" + d.dir, "TMPDIR=" + d.dir, "PATH=" + os.Getenv("PATH")}
	m.cmd.Stdout, m.cmd.Stderr = log, log
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the demo decides when it ends, not the terminal's Ctrl-C
	if err := m.cmd.Start(); err != nil {
		return fmt.Errorf("starting the manager: %w", err)
	}
	d.manager = m
	go func() {
		_ = m.cmd.Wait() // that it ended is the news, whatever its exit code
		close(m.done)
	}()
	return d.guard.add(m.cmd.Process.Pid)
}

func (m *manager) stop() {
	_ = m.cmd.Process.Signal(syscall.SIGTERM) // fails only if it has exited already
	select {
	case <-m.done:
	case <-time.After(grace):
		_ = syscall.Kill(-m.cmd.Process.Pid, syscall.SIGKILL) // its group, with the processes that render
		<-m.done
	}
}

// charts is the directory that spec.addons[].chart.path is relative to.
func (d *demo) charts() string { return filepath.Join(d.root, "config", "samples", "charts") }

func (d *demo) applyStack(ctx context.Context) error {
	data, err := os.ReadFile(filepath.Join(d.root, stackFile))
	if err != nil {
		return err
	}
	d.stack = &addonsv1.AddonStack{}
	if err := yaml.UnmarshalStrict(data, d.stack); err != nil {
		return fmt.Errorf("%s: %w", stackFile, err)
	}
	return d.client.Create(ctx, d.stack)
}

// waitForStack waits until the manager has found the AddonStack to be valid.
func (d *demo) waitForStack(ctx context.Context) error {
	for {
		stack, err := d.view.stack(ctx, d.stack.Name)
		if err != nil {
			return err
		}
		valid := meta.FindStatusCondition(stack.Status.Conditions, addonsv1.ValidCondition)
		switch {
		case valid == nil:
		case valid.Status == metav1.ConditionTrue:
			return nil
		case valid.Status == metav1.ConditionFalse:
			return fmt.Errorf("AddonStack %s: %s: %s", stack.Name, valid.Reason, valid.Message)
		}
		select {
		case <-d.view.changed:
		case <-ctx.Done():
			return fmt.Errorf("%w: the AddonStack has no condition %s", context.Cause(ctx), addonsv1.ValidCondition)
		}
	}
}

// evidence is the end of the manager's log, as an error beside others.
func (d *demo) evidence() error {
	if d.manager == nil {
		return nil
	}
	data, err := os.ReadFile(d.manager.log)
	if err != nil {
		return nil //nolint:nilerr // there is an error already, and this one says nothing about it
	}
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return errors.New("the manager logged nothing")
	}
	lines := bytes.Split(data, []byte("\n"))
	lines = lines[max(0, len(lines)-logLines):]
	return fmt.Errorf("\nThe end of the manager's log:\n%s", bytes.Join(lines, []byte("\n")))
}
