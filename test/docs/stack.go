// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Schema is what the project's CRD, as "addonstacks", says of a version.
func Schema(root, plural, version string) (apiextensionsv1.JSONSchemaProps, error) {
	file := filepath.Join(root, "config/crd/bases", addonsv1.GroupVersion.Group+"_"+plural+".yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		return apiextensionsv1.JSONSchemaProps{}, err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, crd); err != nil {
		return apiextensionsv1.JSONSchemaProps{}, fmt.Errorf("%s: %w", file, err)
	}
	for _, v := range crd.Spec.Versions {
		if v.Name == version {
			return *v.Schema.OpenAPIV3Schema, nil
		}
	}
	return apiextensionsv1.JSONSchemaProps{}, fmt.Errorf("%s has no version %s", file, version)
}

// foreignKeys are keys of what pages show for clusterctl and Flux.
var foreignKeys = []string{"providers", "cert-manager", "healthCheckExprs"}

// Objects are those that a block of YAML shows. Of a part of an AddonStack, which is
// known by its fields, an AddonStack with that part is made. Pieces for other tools
// aren't objects: they are left out.
func (b Block) Objects(stack apiextensionsv1.JSONSchemaProps) ([]*unstructured.Unstructured, error) {
	documents, err := b.documents()
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, content := range documents {
		_, whole := content["kind"]
		if !whole && among(content, foreignKeys) {
			continue
		}
		if !whole {
			if content, err = stackWith(content, stack); err != nil {
				return nil, fmt.Errorf("%s: %w", b.Where, err)
			}
		}
		objects = append(objects, &unstructured.Unstructured{Object: content})
	}
	return objects, nil
}

// documents are those of a block of YAML.
func (b Block) documents() ([]map[string]any, error) {
	var documents []map[string]any
	for document := range strings.SplitSeq(b.Text, "\n---\n") {
		content := map[string]any{}
		if err := yaml.UnmarshalStrict([]byte(document), &content); err != nil {
			return nil, fmt.Errorf("%s: %w", b.Where, err)
		}
		documents = append(documents, content)
	}
	return documents, nil
}

// stackWith makes an AddonStack with a part of one: of the object, its spec, an add-on, or a chart.
func stackWith(part map[string]any, stack apiextensionsv1.JSONSchemaProps) (map[string]any, error) {
	spec := stack.Properties["spec"]
	addon := *spec.Properties["addons"].Items.Schema
	fits := func(place apiextensionsv1.JSONSchemaProps) bool {
		return among(part, slices.Collect(maps.Keys(place.Properties)))
	}
	switch {
	case fits(stack):
		return objectWith(part), nil
	case fits(spec):
		return objectWith(map[string]any{"spec": part}), nil
	case fits(addon):
		return objectWith(map[string]any{"spec": map[string]any{"addons": []any{addonWith(part)}}}), nil
	case fits(addon.Properties["chart"]):
		chart := over(map[string]any{"oci": map[string]any{"url": "oci://registry.example.org/charts/web"}, "version": "1.0.0"}, part)
		return objectWith(map[string]any{"spec": map[string]any{"addons": []any{addonWith(map[string]any{"chart": chart})}}}), nil
	}
	return nil, fmt.Errorf("the fields %q are of no part of an AddonStack", slices.Sorted(maps.Keys(part)))
}

// objectWith adds what every AddonStack has, unless the part has it.
func objectWith(part map[string]any) map[string]any {
	object := over(map[string]any{"apiVersion": addonsv1.GroupVersion.String(), "kind": "AddonStack"}, part)
	metadata, _ := part["metadata"].(map[string]any)
	object["metadata"] = over(map[string]any{"name": "shown", "namespace": "team-a"}, metadata)
	spec, _ := part["spec"].(map[string]any)
	wanted := map[string]any{}
	if spec["classNames"] == nil {
		wanted["clusterSelector"] = map[string]any{}
	}
	if spec["source"] == nil {
		wanted["addons"] = []any{addonWith(nil)}
	}
	object["spec"] = over(wanted, spec)
	return object
}

// addonWith adds what every add-on has, unless the part has it.
func addonWith(part map[string]any) map[string]any {
	wanted := map[string]any{"name": "web"}
	if part["kustomization"] == nil && part["manifests"] == nil {
		wanted["chart"] = map[string]any{"path": "web"}
	}
	return over(wanted, part)
}

// over puts the fields of one map over those of another.
func over(below, above map[string]any) map[string]any {
	both := maps.Clone(below)
	maps.Copy(both, above)
	return both
}

// among says whether all of a map's keys are known ones.
func among(content map[string]any, known []string) bool {
	for key := range content {
		if !slices.Contains(known, key) {
			return false
		}
	}
	return true
}
