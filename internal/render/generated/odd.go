// SPDX-License-Identifier: Apache-2.0

package generated

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/cluster-chandler/chandler/internal/render/manifest"
)

// refuseOdd has no call get an odd value, and returns those.
func (g *Generator) refuseOdd() (refused []*previousValue) {
	for _, values := range g.previous {
		for _, value := range values {
			if value.odd && !value.unusable {
				value.unusable = true
				refused = append(refused, value)
			}
		}
	}
	return refused
}

// digest is a sum of the content of a Secret, or its beginning, as annotations and names have it.
var digest = regexp.MustCompile(`[0-9a-f]{7,}`)

// withoutSecrets returns objects without the data of Secrets in the namespace, and without digests.
func withoutSecrets(documents []manifest.Document, namespace string) (all []any) {
	for _, o := range manifest.ObjectsOf(documents) {
		secret := o.GetKind() == "Secret" && o.GetAPIVersion() == "v1" && cmp.Or(o.GetNamespace(), namespace) == namespace
		plain := map[string]any{}
		for field, value := range o.Object {
			plain[field] = withScalars(value, func(scalar any) any {
				text, ok := scalar.(string)
				switch {
				case secret && (field == "data" || field == "stringData"):
					return nil
				case ok:
					return digest.ReplaceAllStringFunc(text, func(sum string) string { return strings.Repeat(mark, len(sum)) })
				}
				return scalar
			})
		}
		all = append(all, plain)
	}
	return all
}

// withScalars returns a copy of a value with other values in place of those that are neither maps nor lists.
func withScalars(value any, other func(scalar any) any) any {
	switch value := value.(type) {
	case map[string]any:
		copied := make(map[string]any, len(value))
		for key, v := range value {
			copied[key] = withScalars(v, other)
		}
		return copied
	case []any:
		copied := make([]any, len(value))
		for i, v := range value {
			copied[i] = withScalars(v, other)
		}
		return copied
	}
	return other(value)
}
