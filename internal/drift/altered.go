// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"maps"
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
	// Owned says that the manager owned it before.
	Owned bool
}

// AlteredBy returns the fields that get another value once a manager has applied an object as in a dry run: those that the manager
// has before or after, and those that the server or a webhook sets with them. It sorts them by path.
func AlteredBy(live, applied *unstructured.Unstructured, manager string) (own, others []Altered) {
	had := setOf(live.GetManagedFields(), manager)
	mine := had.Union(setOf(applied.GetManagedFields(), manager)).Leaves()
	for path := range mine.All() {
		own = appendAltered(own, path, live.Object, applied.Object, had.Has(path))
	}
	before, err := typed.DeducedParseableType.FromUnstructured(withoutServers(live.Object))
	if err != nil {
		return own, nil
	}
	after, err := typed.DeducedParseableType.FromUnstructured(withoutServers(applied.Object))
	if err != nil {
		return own, nil
	}
	if differ, err := before.Compare(after); err == nil {
		for path := range differ.Added.Union(differ.Modified).Union(differ.Removed).Leaves().All() {
			if !slices.ContainsFunc(own, func(a Altered) bool { return isPrefix(a.Path, path) || isPrefix(path, a.Path) }) {
				others = appendAltered(others, path, live.Object, applied.Object, false)
			}
		}
	}
	return own, others
}

func appendAltered(all []Altered, path fieldpath.Path, live, applied map[string]any, owned bool) []Altered {
	a := Altered{Path: path.Copy(), Before: ValueAt(live, path), After: ValueAt(applied, path), Owned: owned}
	if reflect.DeepEqual(a.Before, a.After) {
		return all
	}
	return append(all, a)
}

func isPrefix(short, long fieldpath.Path) bool {
	return len(short) <= len(long) && short.Equals(long[:len(short)])
}

// withoutServers returns an object without what each write changes, and without its status.
func withoutServers(o map[string]any) map[string]any {
	is := maps.Clone(o)
	delete(is, "status")
	if metadata, ok := o["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		for _, field := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"} {
			delete(metadata, field)
		}
		is["metadata"] = metadata
	}
	return is
}
