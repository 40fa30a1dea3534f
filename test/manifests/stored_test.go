// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestStoredObjectsOutliveARule has a stack that was stored before there was a rule which
// it breaks: it can still be worked on, and fixed.
func TestStoredObjectsOutliveARule(t *testing.T) {
	long.InCI(t)
	g := NewWithT(t)
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Name: "stored"})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(cp.Stop()).To(Succeed()) })
	scheme := runtime.NewScheme()
	g.Expect(addonsv1.AddToScheme(scheme)).To(Succeed())
	c, err := client.New(cp.Config(), client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	install := func(definition *unstructured.Unstructured) {
		g.Expect(c.Patch(t.Context(), definition, client.Apply, client.FieldOwner("test"), client.ForceOwnership)).To(Succeed()) //nolint:staticcheck // it has no typed apply
	}

	previous := definitionOfStacks(t)
	without(previous.Object, "without .git")
	install(previous)
	s := cloned("stored")
	g.Eventually(func() error { return c.Create(t.Context(), s.DeepCopy()) }, "20s").Should(Succeed())
	install(definitionOfStacks(t))
	g.Eventually(func() error { return c.Create(t.Context(), cloned("another"), client.DryRunAll) }, "20s").Should(MatchError(ContainSubstring("without .git")))

	change := func(change func(*addonsv1.AddonStack)) error {
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(s), s)).To(Succeed())
		change(s)
		return c.Update(t.Context(), s)
	}
	g.Expect(change(func(s *addonsv1.AddonStack) { s.Finalizers = []string{"example.org/kept"} })).To(Succeed())
	g.Expect(change(func(s *addonsv1.AddonStack) { s.Spec.Addons[0].Chart.Version = "2.0.0" })).To(Succeed(), "the add-on's other fields")
	g.Expect(change(func(s *addonsv1.AddonStack) {
		s.Spec.Addons = append([]addonsv1.Addon{{Name: "first", Chart: addonsv1.ChartSource{Path: "first"}}}, s.Spec.Addons...)
	})).To(Succeed(), "another add-on before it")
	s.Status.ObservedGeneration = s.Generation
	g.Expect(c.Status().Update(t.Context(), s)).To(Succeed())
	err = change(func(s *addonsv1.AddonStack) {
		s.Spec.Addons[1].Chart.GitHub.URL = "https://github.com/example/other.git"
	})
	g.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "a change of what breaks it: %v", err)
	g.Expect(change(func(s *addonsv1.AddonStack) { s.Spec.Addons[1].Chart.GitHub.URL = "https://github.com/example/charts" })).To(Succeed())
	g.Expect(change(func(s *addonsv1.AddonStack) { s.Finalizers = nil })).To(Succeed())
}

// cloned is a stack with the address that a repository is cloned from.
func cloned(name string) *addonsv1.AddonStack {
	return &addonsv1.AddonStack{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: addonsv1.AddonStackSpec{
			ClusterSelector: &metav1.LabelSelector{},
			Addons: []addonsv1.Addon{{Name: "web", Chart: addonsv1.ChartSource{
				GitHub: &addonsv1.GitHubSource{URL: "https://github.com/example/charts.git"}, Version: "1.0.0",
			}}},
		},
	}
}

func definitionOfStacks(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile("../../config/crd/bases/addons.cluster.x-k8s.io_addonstacks.yaml")
	must.Succeed(t, err)
	definition := &unstructured.Unstructured{}
	must.Succeed(t, yaml.Unmarshal(data, &definition.Object))
	return definition
}

// without takes the rules out whose message says that.
func without(node any, says string) {
	switch node := node.(type) {
	case map[string]any:
		if rules, ok := node["x-kubernetes-validations"].([]any); ok {
			node["x-kubernetes-validations"] = slices.DeleteFunc(rules, func(rule any) bool {
				message, _ := rule.(map[string]any)["message"].(string)
				return strings.Contains(message, says)
			})
		}
		for _, child := range node {
			without(child, says)
		}
	case []any:
		for _, child := range node {
			without(child, says)
		}
	}
}

// TestCRDsFitAnAnnotation has `kubectl apply` keep each CRD in an annotation: all annotations of an object have 256 KiB.
func TestCRDsFitAnAnnotation(t *testing.T) {
	const others = 1 << 10
	for _, object := range build(t, shared) {
		if object.GetKind() != "CustomResourceDefinition" {
			continue
		}
		text, err := json.Marshal(object)
		must.Succeed(t, err)
		if len(text) > apivalidation.TotalAnnotationSizeLimitB-others {
			t.Errorf("CRD %s has %d bytes: docs/instances.md is to say `kubectl apply --server-side`", object.GetName(), len(text))
		}
	}
}
