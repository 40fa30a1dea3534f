// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/strictyaml"
)

// Flatten returns the object of a document, or the items if it is a List.
func (m *Reader) Flatten(doc Document) ([]*unstructured.Unstructured, error) {
	if doc.Object == nil {
		return nil, nil
	}
	if !isList(doc.Object) {
		return m.checked(doc)
	}
	var all []*unstructured.Unstructured
	for i, item := range doc.Object.Object["items"].([]any) {
		content, ok := item.(map[string]any)
		if !ok {
			return nil, failure.New(job.ReasonManifestInvalid, "%s: item %d of %s is no Kubernetes object", m.Called(doc.Path), i, doc.kind())
		}
		child := &unstructured.Unstructured{Object: content}
		if itemKind := strings.TrimSuffix(doc.kind(), "List"); itemKind != "" && child.GetKind() == "" {
			// Items of typed lists, such as RoleList, may leave out what the list says.
			child.SetKind(itemKind)
			child.SetAPIVersion(doc.Object.GetAPIVersion())
		}
		objects, err := m.Flatten(Document{Path: doc.Path, Object: child})
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}

// SplitLists makes a document of each item of a List. A List that is a hook stays: it is refused later.
func (m *Reader) SplitLists(documents []Document) ([]Document, error) {
	defer func(objects int) { m.objects = objects }(m.objects) // they are counted when they are collected
	var all []Document
	for _, doc := range documents {
		_, isHook, err := hookOf(doc)
		if err != nil || isHook || !isList(doc.Object) {
			all = append(all, doc) // an error is told again when the hooks are read
			continue
		}
		items, err := m.Flatten(doc)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			text, err := strictyaml.Marshal(item.Object)
			if err != nil {
				return nil, failure.New(job.ReasonManifestInvalid, "%s: %w", m.Called(doc.Path), err)
			}
			all = append(all, Document{Path: doc.Path, text: text, Object: item})
		}
	}
	return all, nil
}

// isList tells a List, of which the items are applied.
func isList(object *unstructured.Unstructured) bool {
	return object != nil && object.IsList() && strings.HasSuffix(object.GetKind(), "List")
}
