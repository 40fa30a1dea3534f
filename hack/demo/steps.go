// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// The subjects of the story.
const (
	upgraded = "web"       // name of the add-on, its namespace and its main objects
	oldChart = "web-1.0.0" // also the value of its objects' label helm.sh/chart
	newChart = "web-1.1.0"

	chartLabel = "helm.sh/chart"
)

// install adds the clusters, and waits for the add-ons on them.
func (d *demo) install(ctx context.Context) error {
	heading("Install: an AddonStack (%s) wants %d add-ons on each Cluster with env=prod. There are three now.", stackFile, len(d.stack.Spec.Addons))
	started := time.Now()
	if err := d.addClusters(ctx); err != nil {
		return err
	}
	if err := d.arrive(ctx, started, oldChart); err != nil {
		return err
	}
	fmt.Println(memory(d.manager.PID()))
	return nil
}

// upgrade changes the version of one chart, and looks from the workload clusters' side, too.
func (d *demo) upgrade(ctx context.Context) error {
	heading("Upgrade: one field of the AddonStack changes, the chart of %s, from %s to %s.", upgraded, oldChart, newChart)
	before := d.stack.DeepCopy()
	i := slices.IndexFunc(d.stack.Spec.Addons, func(a addonsv1.Addon) bool { return a.Name == upgraded && a.Chart.Path == oldChart })
	if i < 0 {
		return fmt.Errorf("%s has no add-on %s of %s", stackFile, upgraded, oldChart)
	}
	d.stack.Spec.Addons[i].Chart.Path = newChart
	started := time.Now()
	if err := d.management.Patch(ctx, d.stack, client.MergeFrom(before)); err != nil {
		return err
	}
	return d.arrive(ctx, started, newChart)
}

// arrive waits for all clusters, and then asks each of them what it runs.
func (d *demo) arrive(ctx context.Context, started time.Time, chart string) error {
	if err := d.await(ctx, started); err != nil {
		return err
	}
	for _, m := range d.members {
		if err := d.inspect(ctx, m, chart); err != nil {
			return err
		}
	}
	return nil
}

// inspect asks a workload cluster what it runs: what Chandler says isn't enough.
func (d *demo) inspect(ctx context.Context, m *member, chart string) error {
	deployment := &appsv1.Deployment{}
	if err := m.client.Get(ctx, client.ObjectKey{Namespace: upgraded, Name: upgraded}, deployment); err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	want, status := *deployment.Spec.Replicas, deployment.Status
	fmt.Printf("  %s says: deployment/%s of %s, %s, %d/%d pods available\n", m.name, deployment.Name,
		deployment.Labels[chartLabel], deployment.Spec.Template.Spec.Containers[0].Image, status.AvailableReplicas, want)
	current := status.ObservedGeneration == deployment.Generation && status.UpdatedReplicas == want && status.AvailableReplicas == want
	if deployment.Labels[chartLabel] != chart || !current {
		return fmt.Errorf("%s: Chandler says it runs %s, but its Deployment isn't there yet", m.name, chart)
	}
	return nil
}

// remove takes the label from one Cluster: its add-ons go, and those of the others stay.
func (d *demo) remove(ctx context.Context) error {
	left, m := d.members[:len(d.members)-1], d.members[len(d.members)-1]
	heading("Remove: Cluster %s loses its label env=prod, so the AddonStack doesn't select it any more.", m.name)
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: m.name}}
	started := time.Now()
	if err := d.management.Patch(ctx, cluster, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"env":null}}}`))); err != nil {
		return err
	}
	err := d.until(ctx, func() error {
		addon := &addonsv1.ClusterAddon{}
		if err := d.management.Get(ctx, client.ObjectKeyFromObject(cluster), addon); err != nil {
			return err
		}
		if addon.Status.ObservedGeneration != addon.Generation || len(addon.Status.Addons) > 0 {
			return fmt.Errorf("%s still has %d add-ons", m.name, len(addon.Status.Addons))
		}
		deployments := &appsv1.DeploymentList{}
		if err := m.client.List(ctx, deployments, client.HasLabels{chartLabel}); err != nil {
			return err
		}
		if len(deployments.Items) > 0 {
			return errors.New(m.name + " still has Deployments of its add-ons")
		}
		return d.complete(ctx, left, func(*member) {})
	})
	if err != nil {
		return err
	}
	done(started, "%s has no add-on any more, and none of their Deployments. The other clusters have theirs.", m.name)
	return nil
}
