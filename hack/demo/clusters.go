// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/kubeconfig"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/controlplane"
)

// namespace of the management cluster that everything is in.
const namespace = "default"

// startClusters starts all control planes side by side, with the CRDs of Cluster API in the first.
func (d *demo) startClusters(ctx context.Context) error {
	heading("Start")
	started := time.Now()
	crds, err := apiserver.ClusterAPICRDs(ctx, "clusters", "clusterclasses")
	if err != nil {
		return err
	}
	d.members = []*member{{name: "bergen", region: "north"}, {name: "genoa", region: "south"}, {name: "osaka", region: "east"}}
	options := []controlplane.Options{{Name: "management", Workers: true, CRDPaths: crds}}
	for _, m := range d.members {
		options = append(options, controlplane.Options{Name: m.name, Workers: true, Nodes: 3})
	}
	if d.planes, err = controlplane.StartAll(ctx, options...); err != nil {
		return err
	}
	for i, plane := range d.planes {
		if err := os.WriteFile(d.file(plane.Name()+".kubeconfig"), plane.Kubeconfig(), 0o600); err != nil {
			return err
		}
		c, err := client.New(plane.Config(), client.Options{Scheme: apiserver.Scheme()})
		if err != nil {
			return err
		}
		if i == 0 {
			d.management = c
		} else {
			d.members[i-1].client = c
		}
	}
	done(started, "control planes of one management and %d workload clusters, with simulated nodes", len(d.members))
	return nil
}

// addClusters does what Cluster API does for clusters whose control plane has just come up.
func (d *demo) addClusters(ctx context.Context) error {
	for i, m := range d.members {
		cluster := &clusterv1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: m.name, Labels: map[string]string{"env": "prod", "region": m.region}},
			Spec:       clusterv1.ClusterSpec{ClusterNetwork: clusterv1.ClusterNetwork{ServiceDomain: "cluster.local"}}, // an empty one is refused
		}
		if err := d.management.Create(ctx, cluster); err != nil {
			return fmt.Errorf("adding Cluster %s: %w", m.name, err)
		}
		if err := d.management.Create(ctx, kubeconfig.GenerateSecret(cluster, d.planes[i+1].Kubeconfig())); err != nil {
			return fmt.Errorf("adding the kubeconfig of Cluster %s: %w", m.name, err)
		}
		before := cluster.DeepCopy()
		cluster.Status.SetTypedPhase(clusterv1.ClusterPhaseProvisioned)
		cluster.Status.Initialization = clusterv1.ClusterInitializationStatus{
			InfrastructureProvisioned: ptr.To(true), ControlPlaneInitialized: ptr.To(true),
		}
		if err := d.management.Status().Patch(ctx, cluster, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("saying that Cluster %s is provisioned: %w", m.name, err)
		}
	}
	return nil
}

// interval is how often the demo asks: times that it prints are that exact.
const interval = 50 * time.Millisecond

// until asks until check has nothing to say against it. It fails when the time is up, or the manager has ended.
func (d *demo) until(ctx context.Context, check func() error) error {
	var missing error
	err := wait.PollUntilContextCancel(ctx, interval, true, func(context.Context) (bool, error) {
		missing = check()
		return missing == nil, d.manager.Ended()
	})
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w:\n%w\nThe end of the manager's log:\n%s", context.Cause(ctx), missing, d.manager.Tail())
	}
	return err
}
