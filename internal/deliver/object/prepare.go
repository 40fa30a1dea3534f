// SPDX-License-Identifier: Apache-2.0

package object

import (
	"encoding/base64"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// Prepare returns copies of rendered objects as they are to be applied. Only the last one of
// objects with the same key counts.
func (s *Scope) Prepare(rendered []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	s.Learn(rendered)
	objects := make([]*unstructured.Unstructured, 0, len(rendered))
	index := make(map[record.ObjectKey]int, len(rendered))
	for _, original := range rendered {
		o := original.DeepCopy()
		namespace, err := s.namespaceOf(o.GroupVersionKind(), o.GetNamespace())
		if err != nil {
			return nil, err
		}
		o.SetNamespace(namespace)
		leaveOut(o)
		label(o, s.Release)
		if o.GroupVersionKind().GroupKind() == SecretKind {
			encodeStringData(o)
		}
		if i, again := index[record.KeyOf(o)]; again {
			objects[i] = o
			continue
		}
		index[record.KeyOf(o)] = len(objects)
		objects = append(objects, o)
	}
	return objects, nil
}

// PrepareBoth prepares CRDs of crds/ and objects of the manifest.
func (s *Scope) PrepareBoth(crds, objects []*unstructured.Unstructured) (_, _ []*unstructured.Unstructured, err error) {
	if crds, err = s.Prepare(crds); err != nil {
		return nil, nil, err
	}
	objects, err = s.Prepare(objects)
	return crds, objects, err
}

// Normalize returns inventory entries with the namespace that they have in the cluster:
// one in a manifest may lack it, or have one that means nothing.
func (s *Scope) Normalize(entries []record.Entry) ([]record.Entry, error) {
	normal := slices.Clone(entries)
	for i := range normal {
		var err error
		if normal[i].Namespace, err = s.namespaceOf(normal[i].GroupVersionKind(), normal[i].Namespace); err != nil {
			return nil, err
		}
	}
	return normal, nil
}

// InventoryOf returns the inventory of a record, as far as kinds are known now.
func (s *Scope) InventoryOf(rec *record.Record) ([]record.Entry, error) {
	entries, err := rec.Inventory()
	if err != nil {
		return nil, err
	}
	return s.Normalize(entries)
}

// ofServer are the fields of metadata that API servers set. Exported objects have them.
var ofServer = []string{"creationTimestamp", "managedFields", "uid", "resourceVersion", "generation", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"}

// leaveOut takes out of an object what isn't its author's to set, so that the add-on doesn't own it. These are a status,
// what API servers set, nulls, empty labels and annotations, and the rules of an aggregated ClusterRole.
func leaveOut(o *unstructured.Unstructured) {
	delete(o.Object, "status")
	for _, field := range ofServer {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	if o.GroupVersionKind().GroupKind() == clusterRoleKind && o.Object["aggregationRule"] != nil {
		delete(o.Object, "rules")
	}
	withoutNothing(o.Object)
}

// withoutNothing deletes the fields that are null: kubectl and Helm 3 leave them to their defaults, and server-side
// apply refuses them, or owns an empty map. It deletes empty labels and annotations, of pod templates too: to own such a map is to
// claim what others put there.
func withoutNothing(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			if field == nil {
				delete(value, key)
			} else {
				withoutNothing(field)
			}
		}
		metadata, _ := value["metadata"].(map[string]any)
		for _, field := range []string{"labels", "annotations"} {
			if all, isMap := metadata[field].(map[string]any); isMap && len(all) == 0 {
				delete(metadata, field)
			}
		}
	case []any:
		for _, item := range value {
			withoutNothing(item)
		}
	}
}

// encodeStringData moves stringData of a Secret to data: the server copies it there and
// forgets who set it, so that a key which the chart drops later would stay. A stringData that isn't
// right is left for the server to refuse.
func encodeStringData(o *unstructured.Unstructured) {
	texts, found, err := unstructured.NestedStringMap(o.Object, "stringData")
	if !found || err != nil {
		return
	}
	for key, text := range texts {
		if unstructured.SetNestedField(o.Object, base64.StdEncoding.EncodeToString([]byte(text)), "data", key) != nil {
			return
		}
	}
	delete(o.Object, "stringData")
}

// label sets the labels that say which add-on an object belongs to. They are on the
// object itself, not on what it makes.
func label(o *unstructured.Unstructured, release record.Release) {
	labels := o.GetLabels()
	if labels == nil {
		labels = make(map[string]string, 2)
	}
	labels[addonsv1.AddonLabel] = release.Name
	labels[addonsv1.AddonNamespaceLabel] = release.Namespace
	o.SetLabels(labels)
}

// Unlabelled returns an object without the labels of its add-on.
func Unlabelled(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	labels := o.GetLabels()
	delete(labels, addonsv1.AddonLabel)
	delete(labels, addonsv1.AddonNamespaceLabel)
	o.SetLabels(labels)
	return o
}

// EntriesOf returns the inventory of CRDs of crds/ and of objects.
func EntriesOf(crds, objects []*unstructured.Unstructured) []record.Entry {
	entries := make([]record.Entry, 0, len(crds)+len(objects))
	for i, o := range slices.Concat(crds, objects) {
		e := record.EntryOf(o)
		e.CRD = i < len(crds)
		entries = append(entries, e)
	}
	return entries
}

// Weight estimates how many bytes of memory objects take.
func Weight(objects ...*unstructured.Unstructured) (bytes int64) {
	for _, o := range objects {
		bytes += weightOfValue(o.Object)
	}
	return bytes
}

func weightOfValue(value any) int64 {
	const (
		ofInterface = 16
		ofHeader    = 24       // of a list or a string
		ofGroup     = 48 + 272 // of a map, which has up to eight entries
	)
	bytes := int64(ofInterface)
	switch value := value.(type) {
	case map[string]any:
		bytes += ofGroup * int64(1+len(value)/8)
		for key, field := range value {
			bytes += int64(len(key)) + weightOfValue(field)
		}
	case []any:
		bytes += ofHeader
		for _, item := range value {
			bytes += weightOfValue(item)
		}
	case string:
		bytes += ofHeader + int64(len(value))
	}
	return bytes
}
