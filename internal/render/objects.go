// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// collect checks the objects of all documents and puts them in order.
func (m *manifestReader) collect(docs []document) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	origin := map[string]string{}
	for _, doc := range docs {
		objects, err := m.flatten(doc)
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			id := identity(object, m.namespace)
			if first, ok := origin[id]; ok {
				where := "more than once in " + m.called(first)
				if first != doc.path {
					where = "in " + first + " and in " + doc.path
				}
				return nil, failf(ReasonManifestInvalid, "%s %s is %s; keep one of them", object.GetKind(), object.GetName(), where)
			}
			origin[id] = doc.path
			all = append(all, object)
		}
	}
	slices.SortStableFunc(all, func(a, b *unstructured.Unstructured) int { return compareKinds(a.GetKind(), b.GetKind()) })
	return all, nil
}

// identity is equal for what would be the same object in the cluster. The namespace is that of
// objects that name none.
func identity(object *unstructured.Unstructured, namespace string) string {
	namespace = cmp.Or(object.GetNamespace(), namespace)
	gk := object.GroupVersionKind().GroupKind()
	return strings.Join([]string{gk.Group, gk.Kind, namespace, object.GetName()}, "/")
}

// flatten returns the object of a document, or the items if it is a List.
func (m *manifestReader) flatten(doc document) ([]*unstructured.Unstructured, error) {
	if doc.object == nil {
		return nil, nil
	}
	if !isList(doc.object) {
		return m.checked(doc)
	}
	var all []*unstructured.Unstructured
	for i, item := range doc.object.Object["items"].([]any) {
		content, ok := item.(map[string]any)
		if !ok {
			return nil, failf(ReasonManifestInvalid, "%s: item %d of %s is no Kubernetes object", m.called(doc.path), i, doc.kind())
		}
		child := &unstructured.Unstructured{Object: content}
		if itemKind := strings.TrimSuffix(doc.kind(), "List"); itemKind != "" && child.GetKind() == "" {
			// Items of typed lists, such as RoleList, may leave out what the list says.
			child.SetKind(itemKind)
			child.SetAPIVersion(doc.object.GetAPIVersion())
		}
		objects, err := m.flatten(document{path: doc.path, object: child})
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}

// single makes a document of each item of a List. A List that is a hook stays: it is refused later.
func (m *manifestReader) single(documents []document) ([]document, error) {
	defer func(objects int) { m.objects = objects }(m.objects) // they are counted when they are collected
	var all []document
	for _, doc := range documents {
		_, isHook, err := hookOf(doc)
		if err != nil || isHook || !isList(doc.object) {
			all = append(all, doc) // an error is told again when the hooks are read
			continue
		}
		items, err := m.flatten(doc)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			text, err := yamlOf(item.Object)
			if err != nil {
				return nil, failf(ReasonManifestInvalid, "%s: %w", m.called(doc.path), err)
			}
			all = append(all, document{path: doc.path, text: text, object: item})
		}
	}
	return all, nil
}

// isList tells a List, of which the items are applied.
func isList(object *unstructured.Unstructured) bool {
	return object != nil && object.IsList() && strings.HasSuffix(object.GetKind(), "List")
}

func (m *manifestReader) checked(doc document) ([]*unstructured.Unstructured, error) {
	if err := checkObject(doc.object); err != nil {
		return nil, failf(ReasonManifestInvalid, "%s: %w", m.called(doc.path), err)
	}
	if m.objects++; m.objects > m.limits.MaxObjects {
		return nil, failf(ReasonOutputTooLarge, "the add-on has more than %d objects; split it", m.limits.MaxObjects)
	}
	return []*unstructured.Unstructured{doc.object}, nil
}

// checkObject says what is missing for an object to be applied by its name.
func checkObject(object *unstructured.Unstructured) error {
	content := object.Object
	for _, field := range []string{"apiVersion", "kind"} {
		if v, _ := content[field].(string); v == "" {
			return fmt.Errorf("%s is missing or no string", field)
		}
	}
	kind := object.GetKind()
	if _, ok := content["metadata"].(map[string]any); !ok {
		return fmt.Errorf("%s without metadata", kind)
	}
	name, _, err := unstructured.NestedString(content, "metadata", "name")
	switch {
	case err != nil:
		return fmt.Errorf("%s: metadata.name is no string", kind)
	case name == "" && object.GetGenerateName() != "":
		return fmt.Errorf("%s with metadata.generateName: only objects with a metadata.name can be kept up to date", kind)
	case name == "":
		return fmt.Errorf("%s without metadata.name", kind)
	}
	if _, _, err := unstructured.NestedString(content, "metadata", "namespace"); err != nil {
		return fmt.Errorf("%s %s: metadata.namespace is no string", kind, name)
	}
	for _, field := range []string{"labels", "annotations"} {
		if err := checkStrings(content, field); err != nil {
			return fmt.Errorf("%s %s: %w", kind, name, err)
		}
	}
	return nil
}

// checkStrings names the first label or annotation that is no string, as true and 1 are without quotes.
func checkStrings(content map[string]any, field string) error {
	if _, _, err := unstructured.NestedNullCoercingStringMap(content, "metadata", field); err == nil {
		return nil
	}
	values, _, _ := unstructured.NestedMap(content, "metadata", field)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if _, is := values[key].(string); !is && values[key] != nil {
			return fmt.Errorf("metadata.%s[%s] is no string; put its value in quotes", field, key)
		}
	}
	return fmt.Errorf("metadata.%s is no map of strings to strings", field)
}

// compareKinds orders kinds as Helm installs them; unknown ones come last, by name.
func compareKinds(a, b string) int {
	rankA, rankB := slices.Index(releaseutil.InstallOrder, a), slices.Index(releaseutil.InstallOrder, b)
	switch {
	case rankA < 0 && rankB < 0:
		return strings.Compare(a, b)
	case rankA < 0:
		return 1
	case rankB < 0:
		return -1
	}
	return rankA - rankB
}
