// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

func (m *Reader) checked(doc Document) ([]*unstructured.Unstructured, error) {
	if err := CheckObject(doc.Object); err != nil {
		return nil, failure.New(job.ReasonManifestInvalid, "%s: %w", m.Called(doc.Path), err)
	}
	if m.objects++; m.objects > m.Limits.MaxObjects {
		return nil, failure.New(job.ReasonOutputTooLarge, "the add-on has more than %d objects; split it", m.Limits.MaxObjects)
	}
	return []*unstructured.Unstructured{doc.Object}, nil
}

// CheckObject returns an error for an object that can't be applied by its name.
func CheckObject(object *unstructured.Unstructured) error {
	content := object.Object
	for _, field := range []string{"apiVersion", "kind"} {
		if v, _ := content[field].(string); v == "" {
			return fmt.Errorf("%s is missing or no string", field)
		}
	}
	kind := object.GetKind()
	if _, ok := content["metadata"].(map[string]any); !ok {
		return fmt.Errorf("%s without metadata", kind)
	}
	name, _, err := unstructured.NestedString(content, "metadata", "name")
	switch {
	case err != nil:
		return fmt.Errorf("%s: metadata.name is no string", kind)
	case name == "" && object.GetGenerateName() != "":
		return fmt.Errorf("%s with metadata.generateName: only objects with a metadata.name can be kept up to date", kind)
	case name == "":
		return fmt.Errorf("%s without metadata.name", kind)
	}
	if _, _, err := unstructured.NestedString(content, "metadata", "namespace"); err != nil {
		return fmt.Errorf("%s %s: metadata.namespace is no string", kind, name)
	}
	for _, field := range []string{"labels", "annotations"} {
		if err := checkStrings(content, field); err != nil {
			return fmt.Errorf("%s %s: %w", kind, name, err)
		}
	}
	return nil
}

// checkStrings names the first label or annotation that is no string, as true and 1 are without quotes.
func checkStrings(content map[string]any, field string) error {
	if _, _, err := unstructured.NestedNullCoercingStringMap(content, "metadata", field); err == nil {
		return nil
	}
	values, _, _ := unstructured.NestedMap(content, "metadata", field)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if _, is := values[key].(string); !is && values[key] != nil {
			return fmt.Errorf("metadata.%s[%s] is no string; put its value in quotes", field, key)
		}
	}
	return fmt.Errorf("metadata.%s is no map of strings to strings", field)
}
