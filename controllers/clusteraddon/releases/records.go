// SPDX-License-Identifier: Apache-2.0

// Package releases has the installed releases of a workload cluster, as their records tell of them.
package releases

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// Status returns the status of an add-on that only a record knows.
func Status(record deliver.Summary, phase addonsv1.AddonPhase) addonsv1.AddonStatus {
	status := addonsv1.AddonStatus{Name: record.Name, Namespace: record.Namespace, Stack: record.Stack, Phase: phase}
	Describe(&status, record)
	return status
}

// Describe fills the status with what a record says.
func Describe(status *addonsv1.AddonStatus, record deliver.Summary) {
	status.Version, status.Revision = record.Version, int32(record.Revision)
	status.Objects = &addonsv1.ObjectCounts{Total: record.Objects}
	if record.Status == deliver.StatusDeployed {
		status.Objects.Ready = record.Objects
	}
}

// IsRemoving reports whether the removal has begun: half of the add-on may be gone.
func IsRemoving(record deliver.Summary) bool {
	return record.Complete && record.Status == deliver.StatusUninstalling
}

// Dependents returns for each record the name of another one that depends on it, and has to be removed first. If
// add-ons depend on each other, nothing has to before the first one.
func Dependents(records []deliver.Summary) map[deliver.Release]string {
	waiting := map[deliver.Release]string{}
	for _, record := range records {
		at := slices.IndexFunc(records, func(other deliver.Summary) bool {
			return other.Release != record.Release && DependsOn(other.Stack, other.DependsOn, Qualified(record))
		})
		if at >= 0 {
			waiting[record.Release] = records[at].Name
		}
	}
	if len(records) > 0 && len(waiting) == len(records) {
		delete(waiting, records[0].Release)
	}
	return waiting
}

// DependsOn reports whether an add-on with these dependencies depends on another one, which is given as "stack/name".
func DependsOn(ofStack string, dependencies []string, other string) bool {
	return slices.Contains(stack.QualifiedAll(ofStack, dependencies), other)
}

// Qualified returns the record's add-on as "stack/name".
func Qualified(record deliver.Summary) string { return stack.Qualified(record.Stack, record.Name) }

// InOrder returns the records that aren't kept: by most dependencies, then namespace and name.
func InOrder(installed map[deliver.Release]deliver.Summary, keep sets.Set[deliver.Release]) []deliver.Summary {
	leaving := maps.Clone(installed)
	maps.DeleteFunc(leaving, func(release deliver.Release, _ deliver.Summary) bool { return keep.Has(release) })
	return slices.SortedFunc(maps.Values(leaving), func(a, b deliver.Summary) int {
		return cmp.Or(
			cmp.Compare(len(b.DependsOn), len(a.DependsOn)),
			cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name),
		)
	})
}

// Names returns the releases of records.
func Names(records []deliver.Summary) []deliver.Release {
	all := make([]deliver.Release, 0, len(records))
	for _, record := range records {
		all = append(all, record.Release)
	}
	return all
}
