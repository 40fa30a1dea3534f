// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/cluster-chandler/chandler/internal/drift"
)

// ResourcePolicyAnnotation with the value ResourcePolicyKeep keeps an object when
// its release is uninstalled (https://helm.sh/docs/howto/charts_tips_and_tricks/).
const (
	ResourcePolicyAnnotation = "helm.sh/resource-policy"
	ResourcePolicyKeep       = "keep"
)

// ObjectKey identifies an object across versions of its API.
type ObjectKey struct {
	Group, Kind, Namespace, Name string
}

// String is "Kind namespace/name" or "Kind name".
func (k ObjectKey) String() string {
	if k.Namespace == "" {
		return k.Kind + " " + k.Name
	}
	return k.Kind + " " + k.Namespace + "/" + k.Name
}

// Entry is an object of an inventory.
type Entry struct {
	Group     string `json:"group,omitempty"`
	Version   string `json:"version"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// UID of the object once it is known to be this add-on's.
	UID types.UID `json:"uid,omitempty"`
	// Fields are those that the add-on owned once it had applied the object; zero if it
	// isn't known.
	Fields drift.Fields `json:"fields,omitzero"`
	// Shared says that it is a namespace of somebody else: it is never deleted.
	Shared bool `json:"shared,omitempty"`
	// CRD says that it is from the chart's crds/ directory: it is never deleted.
	CRD bool `json:"crd,omitempty"`
	// Helm says that the entry is from a manifest that Helm installed, so that the
	// object may lack our labels.
	Helm bool `json:"helm,omitempty"`
	// Unproven says that the entry is from a record that wasn't proven. Its object is the
	// add-on's only if the add-on has set fields of it.
	Unproven bool `json:"unproven,omitempty"`
}

// Touched reports whether the object may be there as the add-on's.
func (e Entry) Touched() bool { return e.UID != "" || e.Helm || e.Unproven }

// Key of the object.
func (e Entry) Key() ObjectKey {
	return ObjectKey{Group: e.Group, Kind: e.Kind, Namespace: e.Namespace, Name: e.Name}
}

// GroupVersionKind of the object.
func (e Entry) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: e.Group, Version: e.Version, Kind: e.Kind}
}

// KeyOf returns the object's key.
func KeyOf(o *unstructured.Unstructured) ObjectKey {
	gvk := o.GroupVersionKind()
	return ObjectKey{Group: gvk.Group, Kind: gvk.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// ByKey returns objects by their keys.
func ByKey(objects []*unstructured.Unstructured) map[ObjectKey]*unstructured.Unstructured {
	all := make(map[ObjectKey]*unstructured.Unstructured, len(objects))
	for _, o := range objects {
		all[KeyOf(o)] = o
	}
	return all
}

// EntryOf returns the object's entry, without its UID.
func EntryOf(o *unstructured.Unstructured) Entry {
	gvk := o.GroupVersionKind()
	return Entry{
		Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind,
		Namespace: o.GetNamespace(), Name: o.GetName(),
	}
}

// Union returns the entries of both, sorted. An object that is in both has the version and marks of
// the later entry, and keeps the facts that are known of its owner.
func Union(earlier, later []Entry) []Entry {
	merged := make(map[ObjectKey]Entry, len(earlier)+len(later))
	for _, e := range earlier {
		merged[e.Key()] = e
	}
	for _, e := range later {
		if old, ok := merged[e.Key()]; ok {
			e.UID = cmp.Or(e.UID, old.UID)
			e.Helm, e.Shared = e.Helm || old.Helm, e.Shared || old.Shared
			// A CRD that a chart once put into crds/ holds data of people, wherever it is now.
			e.CRD = e.CRD || old.CRD
			e.Unproven = e.Unproven && old.Unproven
		}
		merged[e.Key()] = e
	}
	return sorted(merged)
}

// Minus returns the entries of old whose objects aren't in kept, sorted.
func Minus(old, kept []Entry) []Entry {
	left := make(map[ObjectKey]Entry, len(old))
	for _, e := range old {
		left[e.Key()] = e
	}
	for _, e := range kept {
		delete(left, e.Key())
	}
	return sorted(left)
}

// Kinds returns the distinct kinds as "group/version/Kind" ("version/Kind" in the
// core group), sorted and joined by commas.
func Kinds(entries []Entry) string {
	kinds := sets.New[string]()
	for _, e := range entries {
		kinds.Insert(e.GroupVersionKind().GroupVersion().String() + "/" + e.Kind)
	}
	return strings.Join(sets.List(kinds), ",")
}

// SumsOf returns the sums of the fields of an inventory's objects. Jobs aren't in it: they may
// be deleted once they ran to their end.
func SumsOf(entries []Entry) drift.Sums {
	sums := drift.Sums{}
	for _, e := range entries {
		kind := e.GroupVersionKind().GroupKind()
		if e.Fields == 0 || kind == jobKind {
			continue
		}
		sum := sums[kind]
		sum.Add(types.NamespacedName{Namespace: e.Namespace, Name: e.Name}, e.Fields)
		sums[kind] = sum
	}
	return sums
}

var jobKind = schema.GroupKind{Group: "batch", Kind: "Job"}

func sorted(m map[ObjectKey]Entry) []Entry {
	return slices.SortedFunc(maps.Values(m), func(a, b Entry) int {
		return slices.Compare(
			[]string{a.Group, a.Kind, a.Namespace, a.Name},
			[]string{b.Group, b.Kind, b.Namespace, b.Name})
	})
}
