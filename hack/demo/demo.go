// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/gobuild"
	"github.com/cluster-chandler/chandler/test/manager"
	"github.com/cluster-chandler/chandler/test/process"
)

// grace is how long the manager may take to stop.
const grace = 5 * time.Second

// demo is what runs, in the order in which it comes up.
type demo struct {
	root   string // of the checkout, where the demo is started
	dir    string // temporary: the manager's binary, its log, kubeconfigs
	binDir string // of the control planes' binaries, and kubectl

	chandler   *manager.Installation
	planes     []*controlplane.ControlPlane // the management cluster's is the first
	management client.Client
	members    []*member
	stack      *addonsv1.AddonStack
	manager    *process.Process
}

// member is a workload cluster of the fleet.
type member struct {
	name, region string
	client       client.Client
}

// build provides the binaries: those of the control planes, once for each version of them, and the manager.
func (d *demo) build(ctx context.Context) error {
	var err error
	if d.root, err = os.Getwd(); err != nil {
		return err
	}
	if d.dir, err = os.MkdirTemp("", "chandler-demo-"); err != nil {
		return err
	}
	heading("Build")
	started := time.Now()
	if d.binDir, err = controlplane.BinDir(ctx, os.Stdout); err != nil {
		return err
	}
	done(started, "control planes: built once, and kept for the next time")
	// Each control plane is saved the look for its binaries.
	if err := os.Setenv("KUBEBUILDER_ASSETS", d.binDir); err != nil {
		return err
	}
	started = time.Now()
	if err := gobuild.Build(ctx, d.root, d.file("manager"), "."); err != nil {
		return err
	}
	done(started, "manager: built from this checkout")
	return nil
}

// file returns a file of the demo's own.
func (d *demo) file(name string) string { return filepath.Join(d.dir, name) }

// stop ends everything, in the opposite order.
func (d *demo) stop() {
	if d.manager != nil {
		_ = d.manager.Terminate(grace)                      // it is gone in any case
		_ = syscall.Kill(-d.manager.PID(), syscall.SIGKILL) // processes that render, if it left any
	}
	var planes sync.WaitGroup
	for _, plane := range d.planes {
		planes.Go(func() { _ = plane.Stop() }) // an error could only be about a temporary file
	}
	planes.Wait()
	if d.dir != "" {
		_ = os.RemoveAll(d.dir)
	}
}

// kubectl runs the real one against a cluster.
func (d *demo) kubectl(ctx context.Context, cluster string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(d.binDir, "kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+d.file(cluster+".kubeconfig"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// showTheWay tells how to look around.
func (d *demo) showTheWay() {
	var kubeconfigs []string
	for _, plane := range d.planes {
		kubeconfigs = append(kubeconfigs, d.file(plane.Name()+".kubeconfig"))
	}
	heading("Look around, in another terminal:")
	fmt.Printf("  export PATH=%s:$PATH KUBECONFIG=%s\n", d.binDir, strings.Join(kubeconfigs, ":"))
	fmt.Printf("  kubectl get clusters,addonstacks,clusteraddons\n")
	fmt.Printf("  kubectl describe clusteraddon %s\n", d.members[0].name)
	fmt.Printf("  kubectl label cluster %s env=prod    # its add-ons come back\n", d.members[len(d.members)-1].name)
	heading("Each workload cluster is a context of its own. Add-ons are Helm releases there:")
	for _, plane := range d.planes[1:] {
		fmt.Printf("  kubectl --context %s-admin@%[1]s get deployments,services,pods -A\n", plane.Name())
	}
	fmt.Printf("  helm --kube-context %s-admin@%[1]s list -A    # with a helm of yours\n", d.members[0].name)
	heading("Metrics, for who may read them:")
	fmt.Printf("  kubectl create clusterrolebinding metrics --clusterrole=system:monitoring --serviceaccount=default:default\n")
	fmt.Printf("  curl -sk -H \"Authorization: Bearer $(kubectl create token default)\" https://%s/metrics | grep ^chandler\n", d.chandler.Metrics)
	heading("Ctrl-C stops everything and removes it.")
}
