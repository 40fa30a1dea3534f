// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// expectRepaired deletes every third object of an add-on, changes a label of every third one, and
// waits until all are as they were.
func (s *server) expectRepaired(t *testing.T, addon, namespace string) {
	t.Helper()
	g := NewWithT(t)
	history := s.history(t, namespace, addon)
	manifest := documents(t, history[len(history)-1].Manifest, namespace)
	before := map[string]*unstructured.Unstructured{}
	for name, document := range manifest {
		obj := &unstructured.Unstructured{}
		g.Expect(json.Unmarshal(document, &obj.Object)).To(Succeed())
		g.Expect(s.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)).To(Succeed(), name)
		before[name] = obj
	}
	deleted, changed := 0, 0
	for i, name := range slices.Sorted(maps.Keys(before)) {
		obj := before[name].DeepCopy()
		labels := obj.GetLabels()
		switch {
		case obj.GetKind() == "Namespace":
		case i%3 == 0:
			g.Expect(s.Delete(t.Context(), obj)).To(Succeed(), name)
			deleted++
		case i%3 == 1 && len(labels) > 0:
			first := slices.Min(slices.Collect(maps.Keys(labels)))
			patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"mine"}}}`, first)
			g.Expect(s.Patch(t.Context(), obj, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("kubectl-label"))).To(Succeed(), name)
			changed++
		}
	}
	g.Expect(min(deleted, changed)).To(BeNumerically(">", 0))
	t.Logf("%s: %d of %d objects deleted, %d changed", addon, deleted, len(before), changed)
	poll(t, patience, "all objects of "+addon+" are to be as they were", func() error {
		var wrong []string
		for _, name := range slices.Sorted(maps.Keys(before)) {
			if err := s.isAsBefore(t, before[name]); err != nil {
				wrong = append(wrong, name+": "+err.Error())
			}
		}
		if len(wrong) > 0 {
			return fmt.Errorf("%d objects: %v", len(wrong), wrong)
		}
		return nil
	})
}

func (s *server) isAsBefore(t *testing.T, was *unstructured.Unstructured) error {
	now := was.DeepCopy()
	switch err := s.Get(t.Context(), client.ObjectKeyFromObject(was), now); {
	case err != nil:
		return err
	case now.GetDeletionTimestamp() != nil:
		return errors.New("it is going")
	case !reflect.DeepEqual(now.GetLabels(), was.GetLabels()):
		return fmt.Errorf("its labels are %v", now.GetLabels())
	case !reflect.DeepEqual(wantedOf(now), wantedOf(was)):
		return errors.New("it is another")
	}
	return nil
}

// wantedOf returns what an object says, without its metadata, its status, and what the cluster
// gives to a Service.
func wantedOf(obj *unstructured.Unstructured) map[string]any {
	content := obj.DeepCopy().Object
	delete(content, "metadata")
	delete(content, "status")
	if spec, ok := content["spec"].(map[string]any); ok && obj.GetKind() == "Service" {
		for _, field := range []string{"clusterIP", "clusterIPs", "healthCheckNodePort"} {
			delete(spec, field)
		}
		ports, _ := spec["ports"].([]any)
		for _, port := range ports {
			delete(port.(map[string]any), "nodePort")
		}
	}
	return content
}
