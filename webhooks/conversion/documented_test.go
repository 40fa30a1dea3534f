// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/admission"
	"github.com/cluster-chandler/chandler/test/docs"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// What the pages show is what a real API server takes, with the project's webhooks.
func TestDocumented(t *testing.T) {
	long.InCI(t)
	s := &server{Client: admission.Start(t, "../..")}
	shown := objectsOfPages(t)
	t.Run("objects are accepted", func(t *testing.T) { shownIsAccepted(t, s, shown) })
	t.Run("the policy about signatures", func(t *testing.T) { policyOfSignatures(t, s, shown) })
}

// shownObject is an object that a page shows.
type shownObject struct {
	*unstructured.Unstructured
	where string
}

// objectsOfPages are all objects of all blocks of YAML.
func objectsOfPages(t *testing.T) []shownObject {
	t.Helper()
	const root = "../.."
	stack, err := docs.Schema(root, "addonstacks", addonsv1.GroupVersion.Version)
	must.Succeed(t, err)
	pages, err := docs.Pages(root)
	must.Succeed(t, err)
	var shown []shownObject
	for _, page := range pages {
		blocks, err := page.Blocks("yaml")
		must.Succeed(t, err)
		for _, block := range blocks {
			objects, err := block.Objects(stack)
			if err != nil {
				t.Error(err)
			}
			for _, object := range objects {
				shown = append(shown, shownObject{object, block.Where})
			}
		}
	}
	return shown
}

func shownIsAccepted(t *testing.T, s *server, shown []shownObject) {
	namespaces := map[string]bool{}
	for _, object := range shown {
		if object.GroupVersionKind().Group == "kustomize.config.k8s.io" {
			continue // a file for kustomize, which test/manifests builds
		}
		if namespace := object.GetNamespace(); namespace != "" && !namespaces[namespace] {
			namespaces[namespace] = true
			made := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}}}
			if err := s.Create(t.Context(), made); err != nil && !apierrors.IsAlreadyExists(err) {
				t.Fatal(err)
			}
		}
		if err := s.Create(t.Context(), object.DeepCopy(), client.DryRunAll, client.FieldValidation("Strict")); err != nil {
			t.Errorf("%s: %v", object.where, err)
		}
	}
	if len(namespaces) == 0 {
		t.Error("the pages show no objects")
	}
}

// policyOfSignatures puts the policy of docs/sources/verification.md in force, and then tries stacks of both versions.
func policyOfSignatures(t *testing.T, s *server, shown []shownObject) {
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	for _, object := range shown {
		if object.GetKind() == "ValidatingAdmissionPolicy" {
			must.Succeed(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, policy))
		}
	}
	must.Succeed(t, s.Create(t.Context(), policy))
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	must.Succeed(t, s.Create(t.Context(), binding))
	message := policy.Spec.Validations[0].Message

	verify := map[string]any{"cosign": map[string]any{"publicKeys": []any{map[string]any{"kind": "ConfigMap", "name": "release-keys"}}}}
	image := func(isSigned bool) map[string]any {
		content := map[string]any{"oci": map[string]any{"url": "oci://registry.example.org/web"}, "version": "1.0.0"}
		if isSigned {
			content["verify"] = verify
		}
		return content
	}
	const signed, unsigned = true, false
	inBundle, inObject := map[string]any{"path": "web"}, map[string]any{"configMap": map[string]any{"name": "web"}}
	stack := func(source map[string]any, addons ...map[string]any) *unstructured.Unstructured {
		spec := map[string]any{"clusterSelector": map[string]any{}}
		if source != nil {
			spec["source"] = source
		}
		var list []any
		for i, addon := range addons {
			addon = maps.Clone(addon)
			addon["name"] = fmt.Sprintf("web-%d", i)
			list = append(list, addon)
		}
		if list != nil {
			spec["addons"] = list
		}
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": addonsv1.GroupVersion.String(), "kind": "AddonStack", "metadata": map[string]any{"name": "web", "namespace": "default"}, "spec": spec,
		}}
	}
	try := func(o *unstructured.Unstructured) error { return s.Create(t.Context(), o.DeepCopy(), client.DryRunAll) }
	denied := func(err error) bool { return err != nil && strings.Contains(err.Error(), message) }

	NewWithT(t).Eventually(func() error { return try(stack(nil, map[string]any{"chart": image(unsigned)})) }, 30*time.Second, 100*time.Millisecond).
		Should(Satisfy(denied), "the policy is to come into force")

	for _, kind := range []string{"chart", "kustomization", "manifests"} {
		for name, tc := range map[string]struct {
			stack *unstructured.Unstructured
			taken bool
		}{
			"signed":                                   {stack(nil, map[string]any{kind: image(signed)}), true},
			"unsigned":                                 {stack(nil, map[string]any{kind: image(unsigned)}), false},
			"unsigned behind a signed one":             {stack(nil, map[string]any{kind: image(signed)}, map[string]any{kind: image(unsigned)}), false},
			"below --artifact-root":                    {stack(nil, map[string]any{kind: inBundle}), false},
			"in a ConfigMap":                           {stack(nil, map[string]any{kind: inObject}), false},
			"in a signed bundle":                       {stack(image(signed), map[string]any{kind: inBundle}), true},
			"in an unsigned bundle":                    {stack(image(unsigned), map[string]any{kind: inBundle}), false},
			"signed, beside an unsigned bundle":        {stack(image(unsigned), map[string]any{kind: image(signed)}), false},
			"unsigned, beside a signed bundle":         {stack(image(signed), map[string]any{kind: image(unsigned)}), false},
			"in a ConfigMap, beside a signed bundle":   {stack(image(signed), map[string]any{kind: inObject}), false},
			"all of a signed bundle, without add-ons":  {stack(image(signed)), true},
			"all of an unsigned one, without add-ons":  {stack(image(unsigned)), false},
			"a bundle in a ConfigMap, without add-ons": {stack(inObject), false},
		} {
			if err := try(tc.stack); tc.taken && err != nil || !tc.taken && !denied(err) {
				t.Errorf("%s, %s: %v", kind, name, err)
			}
		}
	}

	t.Run("v1alpha1", func(t *testing.T) {
		g := NewWithT(t)
		older := func(field string, content any) *unstructured.Unstructured {
			manifest := s.manifest("web")
			unstructured.RemoveNestedField(manifest.Object, "spec", "addons")
			set(manifest, content, "spec", field)
			return manifest
		}
		addon := func(isSigned bool) []any { return []any{map[string]any{"name": "web", "chart": image(isSigned)}} }
		g.Expect(try(older("addons", addon(unsigned)))).To(Satisfy(denied))
		g.Expect(try(older("addons", addon(signed)))).To(Succeed())
		g.Expect(try(older("bundle", image(unsigned)))).To(Satisfy(denied), "the policy sees it as source")
		g.Expect(try(older("bundle", image(signed)))).To(Succeed())
	})
}
