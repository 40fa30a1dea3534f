// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/must"
)

// objectVersion tells whether an object was written, or its spec changed.
type objectVersion struct {
	resourceVersion string
	generation      int64
	hasStatus       bool // then others write it all the time
}

// versionsOf reads the versions of all objects of an add-on, by "Kind namespace/name".
func (s *server) versionsOf(t *testing.T, addon, namespace string) map[string]objectVersion {
	t.Helper()
	selector := addonsv1.AddonLabel + "=" + addon + "," + addonsv1.AddonNamespaceLabel + "=" + namespace
	versions := map[string]objectVersion{}
	s.each(t, metav1.ListOptions{LabelSelector: selector}, func(resource metav1.APIResource, _ schema.GroupVersion, obj unstructured.Unstructured) {
		if !slices.Contains(madeByKubernetes, resource.Kind) {
			_, hasStatus := obj.Object["status"]
			versions[objectName(&obj)] = objectVersion{obj.GetResourceVersion(), obj.GetGeneration(), hasStatus}
		}
	})
	return versions
}

func objectName(obj client.Object) string {
	return obj.GetObjectKind().GroupVersionKind().Kind + " " + obj.GetNamespace() + "/" + obj.GetName()
}

// expectOnlyChanged compares the add-on's objects with earlier versions of
// them: what is the same in both manifests must not have been written.
func (s *server) expectOnlyChanged(t *testing.T, before map[string]objectVersion, addon, namespace, oldManifest, newManifest string) {
	t.Helper()
	g := NewWithT(t)
	was, is := documents(t, oldManifest, namespace), documents(t, newManifest, namespace)
	now := s.versionsOf(t, addon, namespace)
	var same, changed, disturbed []string
	for name, document := range is {
		version, known := now[name]
		g.Expect(known).To(BeTrue(), "%s of the manifest is in the cluster, with the add-on's labels", name)
		if !bytes.Equal(was[name], document) {
			changed = append(changed, name)
			continue
		}
		same = append(same, name)
		old := before[name]
		if version.generation != old.generation || !version.hasStatus && version.resourceVersion != old.resourceVersion {
			disturbed = append(disturbed, fmt.Sprintf("%s (generation %d to %d)", name, old.generation, version.generation))
		}
	}
	slices.Sort(changed)
	t.Logf("%d objects are rendered as before, %d differently: %v", len(same), len(changed), changed)
	g.Expect(same).NotTo(BeEmpty())
	g.Expect(changed).NotTo(BeEmpty())
	g.Expect(disturbed).To(BeEmpty(), "an upgrade must not write objects whose rendering is the same: that restarts what didn't change")
}

// documents splits a manifest into its objects, in JSON, by their names.
func documents(t *testing.T, manifest, namespace string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(manifest)), 4096)
	for {
		obj := &unstructured.Unstructured{}
		err := decoder.Decode(&obj.Object)
		if errors.Is(err, io.EOF) {
			return all
		}
		must.Succeed(t, err)
		if len(obj.Object) == 0 {
			continue
		}
		text, err := obj.MarshalJSON()
		must.Succeed(t, err)
		if !isClusterScoped(obj.GetKind()) {
			obj.SetNamespace(cmp.Or(obj.GetNamespace(), namespace))
		}
		all[objectName(obj)] = text
	}
}

func isClusterScoped(kind string) bool {
	return slices.Contains([]string{"Namespace", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "IngressClass",
		"GatewayClass", "APIService", "PriorityClass", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"}, kind)
}

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
