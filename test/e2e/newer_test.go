// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	chandler "github.com/cluster-chandler/chandler/test/manager"
	"github.com/cluster-chandler/chandler/test/must"
)

// newerVersion is what the newer manager says its version is.
const newerVersion = "v0.1.0-e2e"

// tomorrow is a field that the next version of the API has, in each of these types.
var tomorrow = []struct {
	file, inType string
	crd          string
	path         []string
}{
	{"api/v1beta1/addon_types.go", "Addon", "addonstacks", []string{"spec", "addons"}},
	{"api/v1beta1/addonstack_status.go", "AddonStackStatus", "addonstacks", []string{"status"}},
	{"api/v1beta1/addonstack_status.go", "StackInstance", "addonstacks", []string{"status", "instances"}},
	{"api/v1beta1/clusteraddon_types.go", "StackRevision", "clusteraddons", []string{"spec", "stacks"}},
	{"api/v1beta1/clusteraddon_types.go", "AddonStatus", "clusteraddons", []string{"status", "addons"}},
}

// writesTomorrow is what the next version does with the field: it writes it wherever
// it writes the type.
var writesTomorrow = []struct{ file, from, to string }{
	{"controllers/assignment/candidate/stack.go", "addonsv1.StackRevision{Name: c.Name,", `addonsv1.StackRevision{Tomorrow: "newer", Name: c.Name,`},
	{"controllers/addonstack/sharing/status.go", "own := &addonsv1.StackInstance{", `own := &addonsv1.StackInstance{Tomorrow: "newer",`},
	{"controllers/addonstack/sharing/sum.go", "report.Summarize(sum)", `sum.Status.Tomorrow = "newer"; report.Summarize(sum)`},
	{"controllers/clusteraddon/wanted/addon.go", "addonsv1.AddonStatus{Name: a.Name,", `addonsv1.AddonStatus{Tomorrow: "newer", Name: a.Name,`},
}

// TestNextVersionCanBeMade fails when the code is no longer as TestTwoVersions edits it, which runs in make test-all alone.
func TestNextVersionCanBeMade(t *testing.T) {
	for _, change := range writesTomorrow {
		source, err := os.ReadFile(filepath.Join(world.root, change.file))
		must.Succeed(t, err)
		if n := strings.Count(string(source), change.from); n != 1 {
			t.Errorf("%s has %q %d times", change.file, change.from, n)
		}
	}
}

// buildNewer builds the next version of the manager, from the checkout with some
// files overlaid.
func buildNewer(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	edit := func(file, from, to string) {
		t.Helper()
		source := filepath.Join(world.root, file)
		copied, ok := overlay.Replace[source]
		if !ok {
			copied = filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
			overlay.Replace[source] = copied
		} else {
			source = copied
		}
		data, err := os.ReadFile(source)
		must.Succeed(t, err)
		if n := strings.Count(string(data), from); n != 1 {
			t.Fatalf("%s has %q %d times: say here how the next version is made", file, from, n)
		}
		must.Succeed(t, os.WriteFile(copied, []byte(strings.Replace(string(data), from, to, 1)), 0o600))
	}
	for _, field := range tomorrow {
		begin := "type " + field.inType + " struct {\n"
		edit(field.file, begin, begin+"\tTomorrow string `json:\"tomorrow,omitempty\"`\n")
	}
	for _, change := range writesTomorrow {
		edit(change.file, change.from, change.to)
	}
	file := filepath.Join(dir, "overlay.json")
	data, err := json.Marshal(overlay)
	must.Succeed(t, err)
	must.Succeed(t, os.WriteFile(file, data, 0o600))
	binary, err := chandler.Build(t.Context(), world.root, dir, newerVersion, "-overlay="+file)
	must.Succeed(t, err)
	return binary
}

// installNewerCRDs gives the management cluster the CRDs of the next version, until
// the test ends. No other test may run at the same time.
func installNewerCRDs(t *testing.T) {
	t.Helper()
	for _, field := range tomorrow {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		crd.Name = field.crd + "." + addonsv1.GroupVersion.Group
		had := false
		changeOn(t, world.hub, crd, func(crd *apiextensionsv1.CustomResourceDefinition) {
			properties := propertiesAt(t, crd, field.path)
			_, had = properties["tomorrow"]
			properties["tomorrow"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		})
		if had {
			t.Fatalf("%s has the field already", crd.Name)
		}
		t.Cleanup(func() {
			changeOn(t, world.hub, crd, func(crd *apiextensionsv1.CustomResourceDefinition) {
				delete(propertiesAt(t, crd, field.path), "tomorrow")
			})
		})
	}
	poll(t, patience, "the API server is to serve the newer API", func() error {
		probe := stackOfTomorrow((&tenant{namespace: "default"}).newStack("probe", nil, addonsv1.Addon{Name: "a", Chart: addonsv1.ChartSource{Path: "a"}}))
		if err := world.hub.Create(t.Context(), probe, client.DryRunAll); err != nil {
			return err
		}
		if got := tomorrowIn(probe, "spec", "addons"); got[0] != "yes" {
			return fmt.Errorf("the field is dropped: %v", got)
		}
		return nil
	})
}

// propertiesAt returns the properties at a path of the v1beta1 schema; of a list,
// those of its elements.
func propertiesAt(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, path []string) map[string]apiextensionsv1.JSONSchemaProps {
	t.Helper()
	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Name != addonsv1.GroupVersion.Version {
			continue
		}
		properties := crd.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties
		for _, part := range path {
			schema := properties[part]
			if properties = schema.Properties; schema.Items != nil {
				properties = schema.Items.Schema.Properties
			}
		}
		if properties == nil {
			t.Fatalf("CRD %s has no properties at %v", crd.Name, path)
		}
		return properties
	}
	t.Fatalf("CRD %s has no version %s", crd.Name, addonsv1.GroupVersion.Version)
	return nil
}

// asUnstructured returns an AddonStack without its type.
func asUnstructured(s *addonsv1.AddonStack) *unstructured.Unstructured {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s)
	if err != nil {
		panic(err) // of a literal
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(addonsv1.GroupVersion.WithKind("AddonStack"))
	return u
}

// stackOfTomorrow is an AddonStack whose add-ons have the new field.
func stackOfTomorrow(s *addonsv1.AddonStack) *unstructured.Unstructured {
	u := asUnstructured(s)
	for _, addon := range u.Object["spec"].(map[string]any)["addons"].([]any) {
		addon.(map[string]any)["tomorrow"] = "yes"
	}
	return u
}

// tomorrowIn returns the new field of each element of a list, or of an object.
func tomorrowIn(u *unstructured.Unstructured, path ...string) []string {
	found, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
	elements, ok := found.([]any)
	if !ok {
		elements = []any{found}
	}
	var values []string
	for _, element := range elements {
		object, _ := element.(map[string]any)
		value, _ := object["tomorrow"].(string)
		values = append(values, value)
	}
	return values
}
