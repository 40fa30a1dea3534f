// SPDX-License-Identifier: Apache-2.0

package changes_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/changes"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestOtherAddonsAreHeld changes the names in a held removal: a list of strings that has the name of a list of objects.
func TestOtherAddonsAreHeld(t *testing.T) {
	held := func(addons ...string) *addonsv1.ClusterAddonSpec {
		removal := &addonsv1.HeldRemoval{Cause: addonsv1.RemovalAddonsDropped, Confirmation: "3f9a2c1b-x7k2p", Addons: addons}
		return &addonsv1.ClusterAddonSpec{ClusterName: "prod", Stacks: []addonsv1.StackRevision{{Name: "platform", HeldRemoval: removal}}}
	}
	for name, test := range map[string]struct{ before, after []string }{
		"another one":      {[]string{"apps/web"}, []string{"apps/db"}},
		"one more":         {[]string{"apps/web"}, []string{"apps/db", "apps/web"}},
		"one less":         {[]string{"apps/db", "apps/web"}, []string{"apps/web"}},
		"the same":         {[]string{"apps/web"}, []string{"apps/web"}},
		"in another order": {[]string{"apps/db", "apps/web"}, []string{"apps/web", "apps/db"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			patch, err := changes.Between(held(test.before...), held(test.after...))
			g.Expect(err).NotTo(HaveOccurred())
			document, err := json.Marshal(held(test.before...))
			g.Expect(err).NotTo(HaveOccurred())
			changed, err := patch.Apply(document)
			g.Expect(err).NotTo(HaveOccurred())
			is := &addonsv1.ClusterAddonSpec{}
			g.Expect(json.Unmarshal(changed, is)).To(Succeed())
			g.Expect(is).To(Equal(held(test.after...)))
		})
	}
}

// TestListsOfTheAPI changes a field of an element in each list of a status whose elements have an identity. The patch has
// to name the element: else an instance would take out the fields of all elements that a newer one knows.
func TestListsOfTheAPI(t *testing.T) {
	files, err := filepath.Glob("../../config/crd/bases/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("CRDs: %v, %v", files, err)
	}
	seen := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		must.Succeed(t, err)
		crd := &apiextensionsv1.CustomResourceDefinition{}
		must.Succeed(t, yaml.Unmarshal(data, crd))
		for _, version := range crd.Spec.Versions {
			if version.Name == "v1beta1" {
				status := version.Schema.OpenAPIV3Schema.Properties["status"]
				seen += eachList(&status, nil, func(path []string, keys []string) { expectElement(t, crd.Spec.Names.Kind, path, keys) })
			}
		}
	}
	if seen < 8 {
		t.Errorf("only %d lists were found", seen)
	}
}

// eachList calls visit for each list with keys, with its path. An element of a list is "*" in the path.
func eachList(schema *apiextensionsv1.JSONSchemaProps, path []string, visit func(path, keys []string)) (seen int) {
	for name, property := range schema.Properties {
		seen += eachList(&property, append(path[:len(path):len(path)], name), visit)
	}
	if schema.Items == nil || schema.Items.Schema == nil {
		return seen
	}
	if len(schema.XListMapKeys) > 0 {
		visit(path, schema.XListMapKeys)
		seen++
	}
	return seen + eachList(schema.Items.Schema, append(path[:len(path):len(path)], "*"), visit)
}

// expectElement expects a patch of one field for a list that has another value in one element.
func expectElement(t *testing.T, kind string, path, keys []string) {
	t.Helper()
	with := func(value string) *unstructured.Unstructured {
		element := map[string]any{"changed": value}
		for _, key := range keys {
			element[key] = "same"
		}
		var is any = []any{element}
		for i := len(path) - 1; i >= 0; i-- {
			if path[i] == "*" {
				is = []any{is}
			} else {
				is = map[string]any{path[i]: is}
			}
		}
		return &unstructured.Unstructured{Object: map[string]any{"status": is}}
	}
	patch, err := changes.Between(with("before"), with("after"))
	must.Succeed(t, err)
	if len(patch) != 1 || !strings.HasSuffix(patch[0].Path, "/0/changed") {
		t.Errorf("status.%s of %s: %+v", strings.Join(path, "."), kind, patch)
	}
}
