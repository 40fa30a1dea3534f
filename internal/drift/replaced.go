// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// TakeReplacements returns items of lists of a live object that others put in the place of the
// manager's own. Each is in a list that lacks an item which the manager applies.
// TakeReplacements also returns the object's managedFields with these items moved to the
// manager, so that the next apply takes them out. Both are nil if there are none. It is for
// objects that can't have both items, as a Service whose port was edited.
func TakeReplacements(o *unstructured.Unstructured, live []metav1.ManagedFieldsEntry, manager string) ([]Change, []metav1.ManagedFieldsEntry) {
	ours := slices.IndexFunc(live, func(e metav1.ManagedFieldsEntry) bool { return isApplied(e, manager) })
	if ours < 0 {
		return nil, nil
	}
	owned := parse(live[ours].FieldsV1)
	if owned == nil {
		return nil, nil
	}
	var changes []Change
	all, taken := slices.Clone(live), fieldpath.NewSet()
	for i, e := range live {
		if theirs := parse(e.FieldsV1); i != ours && e.Subresource == "" && theirs != nil {
			found := replacements(o, theirs, owned)
			for _, path := range found {
				changes = append(changes, Change{Path: path, Managers: []string{e.Manager}})
			}
			items := below(theirs, found)
			if items.Empty() {
				continue
			}
			taken = taken.Union(items)
			all[i].FieldsV1 = format(theirs.Difference(items))
		}
	}
	if taken.Empty() {
		return nil, nil
	}
	all[ours].FieldsV1 = format(owned.Union(taken))
	return changes, all
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
