// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/process"
)

// stackFile is the AddonStack that the demo applies.
const stackFile = "config/samples/addonstack.yaml"

// startChandler returns when the manager works: when it has looked at the AddonStack.
func (d *demo) startChandler(ctx context.Context) error {
	started := time.Now()
	var err error
	d.manager, err = process.Start(process.Options{
		Name: "the manager", Binary: d.file("manager"), Home: d.dir, LogFile: d.file("manager.log"),
		Env: []string{"KUBECONFIG=" + d.file(d.planes[0].Name()+".kubeconfig")},
		Args: []string{
			"--artifact-root=" + d.charts(),
			"--allow-loopback", // where the workload clusters are
			"--webhook-port=0", "--leader-elect=false", "--health-addr=0", "--diagnostics-address=0",
		},
	})
	if err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Join(d.root, stackFile))
	if err != nil {
		return err
	}
	d.stack = &addonsv1.AddonStack{}
	if err := yaml.UnmarshalStrict(data, d.stack); err != nil {
		return fmt.Errorf("%s: %w", stackFile, err)
	}
	if err := d.management.Create(ctx, d.stack); err != nil {
		return err
	}
	err = d.until(ctx, func() error {
		stack := &addonsv1.AddonStack{}
		if err := d.management.Get(ctx, client.ObjectKeyFromObject(d.stack), stack); err != nil {
			return err
		}
		valid := meta.FindStatusCondition(stack.Status.Conditions, addonsv1.ValidCondition)
		if valid == nil || valid.Status != metav1.ConditionTrue {
			return fmt.Errorf("AddonStack %s isn't valid yet: %+v", stack.Name, valid)
		}
		return nil
	})
	if err != nil {
		return err
	}
	done(started, "Chandler: process %d works on its first AddonStack; its log is %s", d.manager.PID(), d.manager.LogFile)
	return nil
}

// charts is the directory that spec.addons[].chart.path is relative to.
func (d *demo) charts() string { return filepath.Join(d.root, "config", "samples", "charts") }

// interval is how often the demo asks: times that it prints are that exact.
const interval = 50 * time.Millisecond

// until asks until check has nothing to say against it. It fails when the time is up, or the manager has ended.
func (d *demo) until(ctx context.Context, check func() error) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		missing := check()
		if missing == nil {
			return nil
		}
		if err := d.manager.Ended(); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%w:\n%w\nThe end of the manager's log:\n%s", context.Cause(ctx), missing, d.manager.Tail())
		}
	}
}
