// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/cluster-chandler/chandler/internal/deliver"
)

// removalOrder returns the records of releases that are not kept, by namespace
// and name.
func removalOrder(installed map[deliver.Release]deliver.Summary, keep sets.Set[deliver.Release]) []deliver.Summary {
	var records []deliver.Summary
	for release, record := range installed {
		if !keep.Has(release) {
			records = append(records, record)
		}
	}
	slices.SortFunc(records, func(a, b deliver.Summary) int {
		return cmp.Or(
			cmp.Compare(len(b.DependsOn), len(a.DependsOn)),
			cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name),
		)
	})
	return records
}

// dependent returns an add-on of the same stack that depends on the record's,
// is to be removed too, and is still there. "" if there is none.
func dependent(record deliver.Summary, installed map[deliver.Release]deliver.Summary, keep sets.Set[deliver.Release]) string {
	var names []string
	for release, other := range installed {
		if !keep.Has(release) && other.Stack == record.Stack && release != record.Release && slices.Contains(other.DependsOn, record.Name) {
			names = append(names, release.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return slices.Min(names)
}
