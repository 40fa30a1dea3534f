// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// await waits until all clusters have all add-ons of the AddonStack, at the versions of their charts, and prints when
// each of them had.
func (d *demo) await(ctx context.Context, started time.Time) error {
	arrived := map[string]time.Duration{}
	err := d.until(ctx, func() error {
		return d.complete(ctx, d.members, func(m *member) {
			if _, before := arrived[m.name]; !before {
				arrived[m.name] = time.Since(started)
			}
		})
	})
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)
	fmt.Fprint(table, "\n  CLUSTER\t")
	var versions string
	for _, addon := range d.stack.Spec.Addons {
		fmt.Fprintf(table, "%s\t", strings.ToUpper(addon.Name))
		versions += version(addon) + "\t"
	}
	fmt.Fprintln(table, "READY AFTER")
	for _, m := range d.members {
		fmt.Fprintf(table, "  %s\t%s%.1f s\n", m.name, versions, arrived[m.name].Seconds())
	}
	return table.Flush()
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
		} else if err := d.incomplete(&list.Items[at]); err != nil {
			missing = append(missing, fmt.Errorf("%s: %w", m.name, err))
		} else {
			arrived(m)
		}
	}
	return errors.Join(missing...)
}

// incomplete says what one cluster misses. A status about an older spec doesn't count.
func (d *demo) incomplete(ca *addonsv1.ClusterAddon) error {
	var missing []error
	for _, addon := range d.stack.Spec.Addons {
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

// memory says how much a process has, and its children, which render charts. It reads /proc, where the system has one.
func memory(pid int) string {
	process := filepath.Join("/proc", strconv.Itoa(pid))
	if _, err := os.Stat(process); err != nil {
		return "  Memory isn't measured on this system: it has no /proc."
	}
	together, count := 0, 0
	threads, _ := filepath.Glob(filepath.Join(process, "task", "*", "children")) // the pattern is valid
	for _, thread := range threads {
		children, _ := os.ReadFile(thread) // a thread that has ended has none
		for _, child := range strings.Fields(string(children)) {
			together += resident(filepath.Join("/proc", child))
			count++
		}
	}
	return fmt.Sprintf("  Memory: manager %d MiB; %d processes that render charts, %d MiB together.", resident(process), count, together)
}

// resident is a process's memory in MiB; 0 if it has ended.
func resident(process string) int {
	statm, _ := os.ReadFile(filepath.Join(process, "statm"))
	var size, pages int
	_, _ = fmt.Sscan(string(statm), &size, &pages)
	return pages * os.Getpagesize() >> 20
}
