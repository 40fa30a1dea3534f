// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
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
		return d.complete(ctx, d.members, func(m *member) {
			if !arrived[m.name] {
				arrived[m.name] = true
				done(started, "%s is Ready with %s", m.name, strings.Join(wanted, ", "))
			}
		})
	})
}

// version is that of an add-on's chart, as its folder says.
func version(addon addonsv1.Addon) string {
	return addon.Chart.Path[strings.LastIndex(addon.Chart.Path, "-")+1:]
}

// complete says what clusters miss to be Ready with each add-on at its version, and tells of those that miss nothing.
func (d *demo) complete(ctx context.Context, clusters []*member, arrived func(*member)) error {
	list := &addonsv1.ClusterAddonList{}
	if err := d.management.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return err
	}
	var missing []error
	for _, m := range clusters {
		at := slices.IndexFunc(list.Items, func(ca addonsv1.ClusterAddon) bool { return ca.Spec.ClusterName == m.name })
		if at < 0 {
			missing = append(missing, fmt.Errorf("%s has no ClusterAddon", m.name))
		} else if err := incomplete(&list.Items[at], d.stack.Spec.Addons); err != nil {
			missing = append(missing, fmt.Errorf("%s: %w", m.name, err))
		} else {
			arrived(m)
		}
	}
	return errors.Join(missing...)
}

// incomplete says what one cluster misses. A status about an older spec doesn't count.
func incomplete(ca *addonsv1.ClusterAddon, addons []addonsv1.Addon) error {
	var missing []error
	for _, addon := range addons {
		var is addonsv1.AddonStatus // empty if nothing is said of it
		if at := slices.IndexFunc(ca.Status.Addons, func(s addonsv1.AddonStatus) bool { return s.Name == addon.Name }); at >= 0 {
			is = ca.Status.Addons[at]
		}
		if is.Phase != addonsv1.AddonReady || is.Version != version(addon) {
			missing = append(missing, fmt.Errorf("%s is %q in version %q, wanted %q (%s %s)", addon.Name, is.Phase, is.Version, version(addon), is.Reason, is.Message))
		}
	}
	if ca.Status.ObservedGeneration != ca.Generation || !meta.IsStatusConditionTrue(ca.Status.Conditions, addonsv1.ReadyCondition) {
		missing = append(missing, errors.New("its ClusterAddon isn't Ready"))
	}
	return errors.Join(missing...)
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
