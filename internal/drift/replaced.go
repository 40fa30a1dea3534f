// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Replacement is what another manager put in the place of items of the manager's own lists.
type Replacement struct {
	Changes []Change
	// Managed are the object's managedFields with these items, and those of the replacements before, moved to the
	// manager: the next apply takes them out.
	Managed []metav1.ManagedFieldsEntry
}

// Replacements returns items of lists of a live object that others put in the place of the manager's own, by manager,
// the one that wrote last first. Each is in a list that lacks an item which the manager applies. They are for objects
// that can't have both items, as a Service whose port was edited.
func Replacements(o *unstructured.Unstructured, live []metav1.ManagedFieldsEntry, manager string) []Replacement {
	ours := slices.IndexFunc(live, func(e metav1.ManagedFieldsEntry) bool { return isApplied(e, manager) })
	if ours < 0 {
		return nil
	}
	owned := parse(live[ours].FieldsV1)
	order := make([]int, len(live))
	for i := range order {
		order[i] = i
	}
	writtenAt := func(i int) time.Time { return ptr.Deref(live[i].Time, metav1.Time{}).Time }
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(writtenAt(b).Compare(writtenAt(a)), cmp.Compare(live[b].Operation, live[a].Operation))
	})
	var all []Replacement
	managed, taken := slices.Clone(live), owned
	for _, i := range order {
		theirs := parse(live[i].FieldsV1)
		if i == ours || live[i].Subresource != "" {
			continue
		}
		found := replacements(o, theirs, owned)
		if len(found) == 0 {
			continue
		}
		var changes []Change
		for _, path := range found {
			changes = append(changes, Change{Path: path, Managers: []string{live[i].Manager}})
		}
		left := theirs.RecursiveDifference(fieldpath.NewSet(found...))
		taken = taken.Union(theirs.Difference(left))
		managed[i].FieldsV1, managed[ours].FieldsV1 = format(left), format(taken)
		all = append(all, Replacement{changes, slices.Clone(managed)})
	}
	return all
}

// replacements returns the items that others own in lists that lack an item of ours.
func replacements(o *unstructured.Unstructured, theirs, owned *fieldpath.Set) []fieldpath.Path {
	var items []fieldpath.Path
	for path := range theirs.All() {
		last := len(path) - 1
		if last < 1 || path[last].Key == nil || owned.Has(path) {
			continue
		}
		list, _ := valueAt(o.Object, path[:last]).([]any)
		kept := 0
		for own := range owned.All() {
			if len(own) == len(path) && own[last].Key != nil && own[:last].Equals(path[:last]) {
				kept++
			}
		}
		if kept < len(list) {
			items = append(items, path.Copy())
		}
	}
	return items
}

func format(set *fieldpath.Set) *metav1.FieldsV1 {
	text, err := set.ToJSON()
	if err != nil {
		return &metav1.FieldsV1{Raw: []byte("{}")} // of what was parsed before
	}
	return &metav1.FieldsV1{Raw: text}
}

// Apart returns managedFields in which another manager has none of the fields that the manager applies. It returns
// nil if it has none of them.
func Apart(managed []metav1.ManagedFieldsEntry, manager, other string) []metav1.ManagedFieldsEntry {
	i := slices.IndexFunc(managed, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == other && e.Subresource == "" })
	if i < 0 {
		return nil // as nearly always
	}
	ours, theirs := setOf(managed, manager), parse(managed[i].FieldsV1)
	if theirs.Intersection(ours).Empty() {
		return nil
	}
	all := slices.Clone(managed)
	left := theirs.Difference(ours)
	if left.Empty() {
		return slices.Delete(all, i, i+1)
	}
	all[i].FieldsV1 = format(left)
	return all
}
