// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
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

// doubt tells why an add-on that no stack wants is left as it is, "" if there is
// no doubt. It is removed only if its stack is known not to want it, by a
// ClusterAddon that has known the add-on before. One that was made anew over a
// cluster with add-ons (after a restore, or by a GitOps tool that brings Clusters
// before AddonStacks) has no reason to take anything away.
func doubt(ca *addonsv1.ClusterAddon, record deliver.Summary) (reason, message string) {
	for _, assigned := range ca.Spec.Stacks {
		if assigned.Name == record.Stack && assigned.Revision == "" {
			return ReasonStackUndecided, fmt.Sprintf("AddonStack %s has no valid revision, see its conditions; the add-on is left as it is", record.Stack)
		}
	}
	for _, known := range ca.Status.Addons {
		if known.Name == record.Name && known.Namespace == record.Namespace && known.Phase != addonsv1.AddonUnassigned {
			return "", ""
		}
	}
	return ReasonStackUnknown, fmt.Sprintf(
		"AddonStack %s installed this add-on, and this ClusterAddon has never run it; it is left as it is. Create the AddonStack, or uninstall the release with helm", record.Stack)
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
