// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"cmp"
	"slices"
	"strings"

	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// ObjectsOf returns the objects of documents, those in Lists too.
func ObjectsOf(documents []Document) (all []*unstructured.Unstructured) {
	for _, doc := range documents {
		if doc.Object == nil {
			continue
		}
		if !isList(doc.Object) {
			all = append(all, doc.Object)
			continue
		}
		for _, item := range doc.Object.Object["items"].([]any) {
			if content, ok := item.(map[string]any); ok {
				all = append(all, &unstructured.Unstructured{Object: content})
			}
		}
	}
	return all
}

// CollectInto fills in the Manifest and Objects of a result.
func (m *Reader) CollectInto(result *job.Result, documents []Document) error {
	slices.SortStableFunc(documents, func(a, b Document) int { return compareKinds(a.kind(), b.kind()) })
	result.Manifest = manifestText(documents)
	var err error
	result.Objects, err = m.collect(documents)
	return err
}

// collect checks the objects of all documents and puts them in order.
func (m *Reader) collect(docs []Document) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	origin := map[string]string{}
	for _, doc := range docs {
		objects, err := m.Flatten(doc)
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			id := Identity(object, m.Namespace)
			if first, ok := origin[id]; ok {
				where := "more than once in " + m.Called(first)
				if first != doc.Path {
					where = "in " + first + " and in " + doc.Path
				}
				return nil, failure.New(job.ReasonManifestInvalid, "%s %s is %s; keep one of them", object.GetKind(), object.GetName(), where)
			}
			origin[id] = doc.Path
			all = append(all, object)
		}
	}
	slices.SortStableFunc(all, func(a, b *unstructured.Unstructured) int { return compareKinds(a.GetKind(), b.GetKind()) })
	return all, nil
}

// Identity returns an equal text for objects that are the same in a cluster. Objects without a namespace are in
// the given one.
func Identity(object *unstructured.Unstructured, namespace string) string {
	namespace = cmp.Or(object.GetNamespace(), namespace)
	gk := object.GroupVersionKind().GroupKind()
	return strings.Join([]string{gk.Group, gk.Kind, namespace, object.GetName()}, "/")
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
