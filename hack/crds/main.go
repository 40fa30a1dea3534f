// SPDX-License-Identifier: Apache-2.0

// Command crds takes the descriptions of fields out of the older versions in CustomResourceDefinitions: the newest version
// describes the same fields, and `kubectl apply` keeps each definition whole in an annotation, of which 256 KiB fit.
package main

import (
	"fmt"
	"os"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	for _, file := range os.Args[1:] {
		if err := shorten(file); err != nil {
			fmt.Fprintln(os.Stderr, file+":", err)
			os.Exit(1)
		}
	}
}

func shorten(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	typed, crd := &apiextensionsv1.CustomResourceDefinition{}, map[string]any{}
	if err := yaml.Unmarshal(data, typed); err != nil {
		return err
	}
	if err := yaml.Unmarshal(data, &crd); err != nil {
		return err
	}
	for i, v := range crd["spec"].(map[string]any)["versions"].([]any) {
		if typed.Spec.Versions[i].Storage {
			continue
		}
		schema := v.(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
		for _, property := range schema["properties"].(map[string]any) { // the object itself keeps its description
			takeOut(property)
		}
	}
	if data, err = yaml.Marshal(crd); err != nil {
		return err
	}
	return os.WriteFile(file, append([]byte("---\n"), data...), 0o644)
}

// takeOut takes the descriptions out of a schema. A field that is called description has a schema, and no text.
func takeOut(node any) {
	switch node := node.(type) {
	case map[string]any:
		if _, ok := node["description"].(string); ok {
			delete(node, "description")
		}
		for _, child := range node {
			takeOut(child)
		}
	case []any:
		for _, child := range node {
			takeOut(child)
		}
	}
}
