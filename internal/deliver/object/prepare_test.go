// SPDX-License-Identifier: Apache-2.0

package object_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestPrepareLeavesOutEmptyMaps owns no annotations of an object that has none: controllers put some there. A selector without
// labels says something.
func TestPrepareLeavesOutEmptyMaps(t *testing.T) {
	objects, err := record.ParseManifest(`apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: all, labels: {}, annotations: {}}
spec: {podSelector: {}, template: {metadata: {labels: {gone: null}, annotations: {}}}}
`)
	must.Succeed(t, err)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(objects[0].GroupVersionKind(), meta.RESTScopeNamespace)
	scope := &object.Scope{Release: record.Release{Namespace: "web", Name: "web"}, Mapper: mapper}
	prepared, err := scope.Prepare(objects)
	must.Succeed(t, err)
	is := prepared[0].Object
	if _, found, _ := unstructured.NestedMap(is, "metadata", "annotations"); found {
		t.Errorf("annotations: %v", is["metadata"])
	}
	if pods, _, _ := unstructured.NestedMap(is, "spec", "template", "metadata"); len(pods) != 0 {
		t.Errorf("of pods: %v", pods)
	}
	if _, found, _ := unstructured.NestedMap(is, "spec", "podSelector"); !found || len(prepared[0].GetLabels()) != 2 {
		t.Errorf("got %v", is)
	}
}
