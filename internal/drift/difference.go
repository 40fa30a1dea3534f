// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"cmp"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Change is a field that a manager owned and owns no more.
type Change struct {
	Path fieldpath.Path
	// Managers own the field now, sorted; none if it was removed.
	Managers []string
}

// Changes compares the managedFields of a live object with those that it has once the
// manager has applied it again, and returns what was changed since, sorted by field.
func Changes(live, applied []metav1.ManagedFieldsEntry, manager string) []Change {
	wanted := setOf(applied, manager).Difference(setOf(live, manager))
	others := othersOf(live, manager)
	var changes []Change
	for path := range wanted.Leaves().All() {
		changes = append(changes, changeAt(path, others))
	}
	return changes
}

// ChangeAt returns the change of a field that the manager owns no more, if it ever did.
func ChangeAt(path fieldpath.Path, live []metav1.ManagedFieldsEntry, manager string) Change {
	return changeAt(path, othersOf(live, manager))
}

func changeAt(path fieldpath.Path, others map[string]*fieldpath.Set) Change {
	change := Change{Path: path.Copy()}
	for name, set := range others {
		if set.Has(path) {
			change.Managers = append(change.Managers, name)
		}
	}
	slices.Sort(change.Managers)
	return change
}

// othersOf returns the fields of the other managers of an object, by name.
func othersOf(live []metav1.ManagedFieldsEntry, manager string) map[string]*fieldpath.Set {
	others := map[string]*fieldpath.Set{}
	for _, e := range live {
		if !isApplied(e, manager) {
			others[e.Manager] = parse(e.FieldsV1).Union(cmp.Or(others[e.Manager], fieldpath.NewSet()))
		}
	}
	return others
}

// ManagersOf returns those to whom the changes are owed. If the fields are nobody's, that is
// the manager that wrote to the live object last, if one did.
func ManagersOf(changes []Change, live []metav1.ManagedFieldsEntry, manager string) []string {
	var names []string
	for _, c := range changes {
		names = append(names, c.Managers...)
	}
	if len(names) == 0 {
		var last metav1.Time
		for _, e := range live {
			if e.Time != nil && e.Subresource == "" && !isApplied(e, manager) && !e.Time.Before(&last) {
				last, names = *e.Time, []string{e.Manager}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Owned returns the changes whose fields somebody owns: the others were removed, or never set.
func Owned(changes []Change) []Change {
	return slices.DeleteFunc(slices.Clone(changes), func(c Change) bool { return len(c.Managers) == 0 })
}

// Differing returns the changes after which a field has another value: one that was changed
// back is somebody else's, and is as it should be.
func Differing(changes []Change, live, applied map[string]any) []Change {
	return slices.DeleteFunc(slices.Clone(changes), func(c Change) bool {
		return reflect.DeepEqual(ValueAt(live, c.Path), ValueAt(applied, c.Path))
	})
}

// Stale returns the fields that a manager applies, and that have another value in the live object, beside the known
// changes: another process of the same manager wrote them.
func Stale(live map[string]any, applied *unstructured.Unstructured, manager string, known []Change) []Change {
	var changes []Change
	for path := range setOf(applied.GetManagedFields(), manager).Leaves().All() {
		isKnown := slices.ContainsFunc(known, func(c Change) bool { return c.Path.Equals(path) })
		if !isKnown && !reflect.DeepEqual(ValueAt(live, path), ValueAt(applied.Object, path)) {
			changes = append(changes, Change{Path: path.Copy()})
		}
	}
	return changes
}

// ValueAt returns what is at a path, nil if nothing is.
func ValueAt(in any, path fieldpath.Path) any {
	if len(path) == 0 {
		return in
	}
	if path[0].FieldName != nil {
		fields, _ := in.(map[string]any)
		return ValueAt(fields[*path[0].FieldName], path[1:])
	}
	list, _ := in.([]any)
	if i := indexOf(list, path[0]); i >= 0 {
		return ValueAt(list[i], path[1:])
	}
	return nil
}
