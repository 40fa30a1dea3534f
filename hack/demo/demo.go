// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/controlplane"
)

// namespace of the management cluster that everything is in.
const namespace = "default"

// demo is what runs, in the order in which it comes up.
type demo struct {
	out *screen

	root   string // of the checkout
	dir    string // temporary: the manager's binary, its log, kubeconfigs
	binDir string // of the control planes' binaries, and kubectl
	guard  *guard

	management *controlplane.ControlPlane
	members    []*member
	client     client.Client // of the management cluster
	view       *view
	manager    *manager

	stack *addonsv1.AddonStack
}

// member is a workload cluster of the fleet.
type member struct {
	name, region string
	plane        *controlplane.ControlPlane
	client       client.WithWatch
}

// stop ends everything, in the opposite order.
func (d *demo) stop() {
	if d.manager != nil {
		d.manager.stop()
	}
	var planes sync.WaitGroup
	for _, plane := range d.planes() {
		planes.Go(func() { _ = plane.Stop() }) // an error could only be about a temporary file
	}
	planes.Wait()
	if d.dir != "" {
		_ = os.RemoveAll(d.dir)
	}
	d.guard.stop()
}

func (d *demo) planes() []*controlplane.ControlPlane {
	if d.management == nil {
		return nil
	}
	planes := []*controlplane.ControlPlane{d.management}
	for _, m := range d.members {
		planes = append(planes, m.plane)
	}
	return planes
}
