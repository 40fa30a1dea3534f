// SPDX-License-Identifier: Apache-2.0

package render

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// subject is an object that patches may change or delete.
type subject struct {
	*unstructured.Unstructured
	changed, deleted bool
}

// patch applies patches to documents and to CRDs. What no patch is for stays as it
// is, to the byte. Lists become one document for each of their items.
func (m *manifestReader) patch(patches []addonsv1.Patch, documents []document, crds []*unstructured.Unstructured) ([]document, []*unstructured.Unstructured, error) {
	documents, err := m.single(documents)
	if err != nil {
		return nil, nil, err
	}
	subjects := make([]*subject, 0, len(documents)+len(crds))
	of := make([]*subject, len(documents))
	for i, doc := range documents {
		if doc.object != nil && checkObject(doc.object) == nil {
			of[i] = &subject{Unstructured: doc.object}
			subjects = append(subjects, of[i])
		}
	}
	for _, crd := range crds {
		subjects = append(subjects, &subject{Unstructured: crd})
	}
	if err := m.apply(patches, subjects); err != nil {
		return nil, nil, err
	}
	var keptDocuments []document
	for i, doc := range documents {
		switch s := of[i]; {
		case s != nil && s.deleted:
			continue
		case s != nil && s.changed:
			text, err := yamlOf(doc.object.Object)
			if err != nil {
				return nil, nil, failf(ReasonPatchFailed, "%s: %w", m.called(doc.path), err)
			}
			if doc, err = m.decode(doc.path, text); err != nil {
				return nil, nil, err
			}
		}
		keptDocuments = append(keptDocuments, doc)
	}
	var keptCRDs []*unstructured.Unstructured
	for _, s := range subjects[len(subjects)-len(crds):] {
		if !s.deleted {
			keptCRDs = append(keptCRDs, s.Unstructured)
		}
	}
	return keptDocuments, keptCRDs, nil
}

// single makes a document of each item of a List. A List that is a hook stays: it is refused later.
func (m *manifestReader) single(documents []document) ([]document, error) {
	defer func(objects int) { m.objects = objects }(m.objects) // they are counted when they are collected
	var all []document
	for _, doc := range documents {
		_, isHook, err := hookOf(doc)
		if err != nil || isHook || doc.object == nil {
			all = append(all, doc) // an error is told again when the hooks are read
			continue
		}
		items, err := m.flatten(doc)
		if err != nil {
			return nil, err
		}
		if len(items) == 1 && items[0] == doc.object {
			all = append(all, doc)
			continue
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
