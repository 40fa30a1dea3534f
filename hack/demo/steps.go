// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// What the story is about.
const (
	stackFile = "config/samples/addonstack.yaml"
	upgraded  = "web"       // name of the add-on, its namespace and its main objects
	oldChart  = "web-1.0.0" // also the value of its objects' label helm.sh/chart
	newChart  = "web-1.1.0"

	chartLabel = "helm.sh/chart"
	// refresh of the times in the table; statuses come by watch.
	refresh = 200 * time.Millisecond
)

// install adds the clusters, and watches the add-ons land on them.
func (d *demo) install(ctx context.Context) error {
	d.out.heading("Install", fmt.Sprintf("An AddonStack (%s) wants %d add-ons on each Cluster with env=prod.\n"+
		"         Cluster API reports three such Clusters:", stackFile, len(d.stack.Spec.Addons)))
	wanted, err := d.wanted()
	if err != nil {
		return err
	}
	r := newRace(wanted, d.members)
	if err := d.addClusters(ctx); err != nil {
		return err
	}
	if err := d.follow(ctx, r); err != nil {
		return err
	}
	d.out.printf("\n  From the first Cluster's creation to the first ready cluster: %.1f s; to all %d: %.1f s.\n",
		r.first().Seconds(), len(r.runners), r.last().Seconds())
	own, workers, count, ok := memory(d.manager.cmd.Process.Pid)
	if !ok {
		d.out.printf("  Memory isn't measured on this system: it has no /proc.\n")
		return nil
	}
	d.out.printf("  Memory: manager %s; %d processes that render charts: %s.\n", own, count, workers)
	return nil
}

// upgrade changes the version of one chart, and looks from the workload clusters' side, too.
func (d *demo) upgrade(ctx context.Context) error {
	d.out.heading("Upgrade", fmt.Sprintf("One field of the AddonStack changes: the chart path of %s, from %s to %s.", upgraded, oldChart, newChart))
	before := d.stack.DeepCopy()
	i := slices.IndexFunc(d.stack.Spec.Addons, func(a addonsv1.Addon) bool { return a.Name == upgraded && a.Chart.Path == oldChart })
	if i < 0 {
		return fmt.Errorf("%s has no add-on %s of %s", stackFile, upgraded, oldChart)
	}
	d.stack.Spec.Addons[i].Chart.Path = newChart
	wanted, err := d.wanted()
	if err != nil {
		return err
	}
	r := newRace(wanted, d.members)
	if err := d.client.Patch(ctx, d.stack, client.MergeFrom(before)); err != nil {
		return err
	}
	if err := d.follow(ctx, r); err != nil {
		return err
	}
	d.out.printf("\n  From the patch to all %d clusters: %.1f s. What these say:\n", len(r.runners), r.last().Seconds())
	for _, m := range d.members {
		if err := d.inspect(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// inspect asks a workload cluster what it runs.
func (d *demo) inspect(ctx context.Context, m *member) error {
	deployment := &appsv1.Deployment{}
	if err := m.client.Get(ctx, client.ObjectKey{Namespace: upgraded, Name: upgraded}, deployment); err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	chart, status := deployment.Labels[chartLabel], deployment.Status
	d.out.printf("  %-*sdeployment/%s  %s  %s  %d/%d pods available\n", clusterColumn, m.name, deployment.Name,
		chart, deployment.Spec.Template.Spec.Containers[0].Image, status.AvailableReplicas, *deployment.Spec.Replicas)
	current := status.ObservedGeneration == deployment.Generation && status.UpdatedReplicas == *deployment.Spec.Replicas
	if chart != newChart || !current || status.AvailableReplicas != *deployment.Spec.Replicas {
		return fmt.Errorf("%s: Chandler says it runs %s, but its Deployment isn't there yet", m.name, newChart)
	}
	return nil
}

// follow draws the table until all clusters have arrived.
func (d *demo) follow(ctx context.Context, r *race) error {
	t := newTable(d.out, r)
	var tick <-chan time.Time
	if t.inPlace {
		ticker := time.NewTicker(refresh)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		seen, err := d.view.clusterAddons(ctx)
		if err != nil {
			return err
		}
		all := r.observe(seen)
		t.draw()
		if all {
			return nil
		}
		select {
		case <-d.view.changed:
		case <-tick:
		case <-ctx.Done():
			return fmt.Errorf("%w; what is missing:\n%s", context.Cause(ctx), r.missing())
		}
	}
}

// wanted reads the add-ons' versions from their charts.
func (d *demo) wanted() ([]wantedAddon, error) {
	var wanted []wantedAddon
	for _, addon := range d.stack.Spec.Addons {
		data, err := os.ReadFile(filepath.Join(d.charts(), addon.Chart.Path, "Chart.yaml"))
		if err != nil {
			return nil, err
		}
		var chart struct{ Version string }
		if err := yaml.Unmarshal(data, &chart); err != nil {
			return nil, fmt.Errorf("%s: %w", addon.Chart.Path, err)
		}
		wanted = append(wanted, wantedAddon{name: addon.Name, version: chart.Version})
	}
	return wanted, nil
}
