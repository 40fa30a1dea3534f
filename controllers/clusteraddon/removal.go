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

// removalOrder returns the records of releases that are not kept: first what has
// the most dependencies, then by namespace and name.
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
// no doubt. It is removed only by a ClusterAddon that has run it: that made its
// record, or has it in its status. One that was made anew over a cluster with
// add-ons (after a restore, or by a GitOps tool that brings Clusters before
// AddonStacks) has no reason to take anything away. Nor is there one while a stack is
// awaited that may take the place of the one that was assigned.
func doubt(ca *addonsv1.ClusterAddon, record deliver.Summary, stacks map[string]undecided) (reason, message string) {
	if stack, ok := stacks[record.Stack]; ok {
		return ReasonStackUndecided, stack.why + "; the add-on is left as it is"
	}
	isAssigned := slices.ContainsFunc(ca.Spec.Stacks, func(s addonsv1.StackRevision) bool { return s.Name == record.Stack })
	if successor, ok := firstAwaited(stacks); ok && !isAssigned {
		return ReasonStackUndecided, fmt.Sprintf("%s. It may want what AddonStack %s, which is no longer assigned, installed; the add-on is left as it is",
			stacks[successor].why, record.Stack)
	}
	if record.OwnerUID == ca.UID {
		return "", ""
	}
	for _, known := range ca.Status.Addons {
		switch {
		case known.Name != record.Name || known.Namespace != record.Namespace:
		case known.Reason == deliver.ReasonReleaseTakenOver:
			return known.Reason, "Another management cluster has taken over the release; it is left as it is"
		case known.Reason != ReasonStackUnknown:
			return "", ""
		}
	}
	return ReasonStackUnknown, fmt.Sprintf(
		"AddonStack %s installed this add-on, and this ClusterAddon has never run it; it is left as it is. Create the AddonStack, or uninstall the release with helm", record.Stack)
}

// removable returns what can be removed now: what no other one that is to be
// removed depends on. Add-ons that depend on each other, as records of different
// times may say, don't hold each other up for ever: then the first one goes.
func removable(records []deliver.Summary) (now []deliver.Summary, waiting map[deliver.Release]string) {
	waiting = map[deliver.Release]string{}
	for _, record := range records {
		if by := dependent(record, records); by != "" {
			waiting[record.Release] = by
		} else {
			now = append(now, record)
		}
	}
	if len(now) == 0 && len(records) > 0 {
		now = records[:1]
		delete(waiting, records[0].Release)
	}
	return now, waiting
}

// dependent returns another one of the records, of the same stack, that depends
// on the record's add-on; "" if there is none.
func dependent(record deliver.Summary, records []deliver.Summary) string {
	var names []string
	for _, other := range records {
		if other.Release != record.Release && other.Stack == record.Stack && slices.Contains(other.DependsOn, record.Name) {
			names = append(names, other.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return slices.Min(names)
}
