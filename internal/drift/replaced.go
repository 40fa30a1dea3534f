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
		items := below(theirs, found)
		if items.Empty() {
			continue
		}
		var changes []Change
		for _, path := range found {
			changes = append(changes, Change{Path: path, Managers: []string{live[i].Manager}})
		}
		taken = taken.Union(items)
		managed[i].FieldsV1, managed[ours].FieldsV1 = format(theirs.Difference(items)), format(taken)
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

// below returns the fields of a set that are at one of the paths, or below.
func below(set *fieldpath.Set, paths []fieldpath.Path) *fieldpath.Set {
	found := fieldpath.NewSet()
	for field := range set.All() {
		if slices.ContainsFunc(paths, func(p fieldpath.Path) bool { return len(field) >= len(p) && field[:len(p)].Equals(p) }) {
			found.Insert(field.Copy())
		}
	}
	return found
}

func format(set *fieldpath.Set) *metav1.FieldsV1 {
	text, err := set.ToJSON()
	if err != nil {
		return &metav1.FieldsV1{Raw: []byte("{}")} // of what was parsed before
	}
	return &metav1.FieldsV1{Raw: text}
}
