// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// Altered is a field that has another value in one object than in another one; nil where it is missing.
type Altered struct {
	Path          fieldpath.Path
	Before, After any
	// Owned says that the manager owned it before, and ByServer that the server or a webhook sets it with those of the manager.
	Owned, ByServer bool
}

// AlteredBy returns the fields that get another value once a manager has applied an object as in a dry run: those that the manager
// has before or after, and those that the server or a webhook sets with them.
func AlteredBy(live, applied *unstructured.Unstructured, manager string) (all []Altered) {
	note := func(a Altered) {
		if a.Before, a.After = ValueAt(live.Object, a.Path), ValueAt(applied.Object, a.Path); !reflect.DeepEqual(a.Before, a.After) {
			all = append(all, a)
		}
	}
	had := setOf(live.GetManagedFields(), manager)
	for path := range had.Union(setOf(applied.GetManagedFields(), manager)).Leaves().All() {
		note(Altered{Path: path.Copy(), Owned: had.Has(path)})
	}
	own := all
	before, err := typed.DeducedParseableType.FromUnstructured(live.Object)
	after, failed := typed.DeducedParseableType.FromUnstructured(applied.Object)
	if err != nil || failed != nil {
		return own
	}
	if differ, err := before.Compare(after); err == nil {
		for path := range differ.Added.Union(differ.Modified).Union(differ.Removed).Leaves().RecursiveDifference(ofServer).All() {
			if !slices.ContainsFunc(own, func(a Altered) bool { return isPrefix(a.Path, path) || isPrefix(path, a.Path) }) {
				note(Altered{Path: path.Copy(), ByServer: true})
			}
		}
	}
	return all
}

func isPrefix(short, long fieldpath.Path) bool {
	return len(short) <= len(long) && short.Equals(long[:len(short)])
}

// ofServer are what each write changes, and the status.
var ofServer = fieldpath.NewSet(
	fieldpath.MakePathOrDie("status"), fieldpath.MakePathOrDie("metadata", "managedFields"), fieldpath.MakePathOrDie("metadata", "resourceVersion"),
	fieldpath.MakePathOrDie("metadata", "generation"), fieldpath.MakePathOrDie("metadata", "uid"), fieldpath.MakePathOrDie("metadata", "creationTimestamp"),
)
