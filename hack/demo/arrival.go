// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/process"
)

// await waits until all clusters have all add-ons of the AddonStack, at the versions of their charts, and prints when
// each of them had.
func (d *demo) await(ctx context.Context, started time.Time) error {
	var wanted []string
	for _, addon := range d.stack.Spec.Addons {
		wanted = append(wanted, addon.Name+" "+version(addon))
	}
	arrived := map[string]bool{}
	return d.until(ctx, func() error {
		var missing []error
		for _, m := range d.members {
			err := d.incomplete(ctx, m)
			if err == nil && !arrived[m.name] {
				arrived[m.name] = true
				done(started, "%s is Ready with %s", m.name, strings.Join(wanted, ", "))
			}
			missing = append(missing, err)
		}
		return errors.Join(missing...)
	})
}

// version is that of an add-on's chart, as its folder says.
func version(addon addonsv1.Addon) string {
	return addon.Chart.Path[strings.LastIndex(addon.Chart.Path, "-")+1:]
}

// incomplete says what a cluster misses to be Ready with each add-on at its version. A status about an older spec
// doesn't count.
func (d *demo) incomplete(ctx context.Context, m *member) error {
	ca, err := d.clusterAddon(ctx, m)
	if err != nil {
		return err
	}
	isReady := ca.Status.ObservedGeneration == ca.Generation && conditions.IsTrue(ca, addonsv1.ReadyCondition)
	for _, addon := range d.stack.Spec.Addons {
		isReady = isReady && slices.ContainsFunc(ca.Status.Addons, func(is addonsv1.AddonStatus) bool {
			return is.Name == addon.Name && is.Phase == addonsv1.AddonReady && is.Version == version(addon)
		})
	}
	if !isReady {
		return fmt.Errorf("%s isn't Ready with all add-ons: %+v", m.name, ca.Status)
	}
	return nil
}

// clusterAddon returns the ClusterAddon of a cluster.
func (d *demo) clusterAddon(ctx context.Context, m *member) (*addonsv1.ClusterAddon, error) {
	ca := &addonsv1.ClusterAddon{}
	return ca, d.management.Get(ctx, client.ObjectKey{Namespace: namespace, Name: m.name}, ca)
}

// memory says how much a process has, and its children, which render charts.
func memory(pid int) string {
	manager, err := process.Memory(pid, process.Resident)
	all, listed := process.List()
	if err != nil || listed != nil {
		return "  Memory is measured on Linux alone."
	}
	together, count := 0.0, 0
	for _, child := range all {
		if child.Parent == pid {
			resident, _ := process.Memory(child.PID, process.Resident) // 0 if it has ended
			together += resident
			count++
		}
	}
	return fmt.Sprintf("  Memory: manager %.0f MiB; %d processes that render charts, %.0f MiB together.", manager, count, together)
}
