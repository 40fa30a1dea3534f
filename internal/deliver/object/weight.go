// SPDX-License-Identifier: Apache-2.0

package object

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Weight estimates how many bytes of memory objects take.
func Weight(objects ...*unstructured.Unstructured) (bytes int) {
	for _, o := range objects {
		bytes += weightOfValue(o.Object)
	}
	return bytes
}

func weightOfValue(value any) int {
	bytes := 16
	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			bytes += 32 + len(key) + weightOfValue(field)
		}
	case []any:
		for _, item := range value {
			bytes += weightOfValue(item)
		}
	case string:
		bytes += len(value)
	}
	return bytes
}
