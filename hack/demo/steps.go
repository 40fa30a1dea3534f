// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
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
	edit := func(spec *addonsv1.AddonStackSpec) {
		spec.Addons[slices.IndexFunc(spec.Addons, func(a addonsv1.Addon) bool { return a.Chart.Path == oldChart })].Chart.Path = newChart
	}
	if err := d.plan(ctx, edit); err != nil {
		return err
	}
	started := time.Now()
	if err := d.editStack(ctx, edit); err != nil {
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
	m := d.members[2]
	heading("Remove: Cluster %s loses its label env=prod, so the AddonStack doesn't select it any more.", m.name)
	started := time.Now()
	if err := d.kubectl(ctx, "management", "label", "cluster", m.name, "env-"); err != nil {
		return err
	}
	return d.until(ctx, func() error {
		ca, err := d.clusterAddon(ctx, m)
		deployments := &appsv1.DeploymentList{}
		if err := errors.Join(err, m.client.List(ctx, deployments, client.HasLabels{chartLabel})); err != nil {
			return err
		}
		if ca.Status.ObservedGeneration != ca.Generation || len(ca.Status.Addons) > 0 || len(deployments.Items) > 0 {
			return fmt.Errorf("%s still has %d add-ons, and %d Deployments", m.name, len(ca.Status.Addons), len(deployments.Items))
		}
		err = errors.Join(d.incomplete(ctx, d.members[0]), d.incomplete(ctx, d.members[1]))
		if err == nil {
			done(started, "%s has no add-on any more, and none of their Deployments. The other clusters have theirs.", m.name)
		}
		return err
	})
}
