// SPDX-License-Identifier: Apache-2.0

package generated

import (
	"cmp"
	"reflect"
	"regexp"
	"strings"

	"github.com/cluster-chandler/chandler/internal/render/manifest"
)

// refuseOdd has no call get an odd value, and returns those.
func (g *Generator) refuseOdd() (refused []*previousValue) {
	for _, values := range g.previous {
		for _, value := range values {
			if value.verdict == odd {
				value.verdict = unfit
				refused = append(refused, value)
			}
		}
	}
	return refused
}

// digest is a sum of the content of a Secret, or its beginning, as annotations and names have it.
var digest = regexp.MustCompile(`[0-9a-f]{7,}`)

// withoutSecrets returns the fields of objects by their paths, without the data of Secrets in the namespace, and
// without digests.
func withoutSecrets(documents []manifest.Document, namespace string) (all []map[string]any) {
	for _, o := range manifest.ObjectsOf(documents) {
		secret := isSecret(o) && cmp.Or(o.GetNamespace(), namespace) == namespace
		fields := map[string]any{}
		walk("", o.Object, itemNumber, func(path string, value any) {
			switch value := value.(type) {
			case map[string]any, []any:
				fields[path] = reflect.TypeOf(value) // what is in it has paths of its own
				return
			case string:
				fields[path] = digest.ReplaceAllStringFunc(value, func(sum string) string { return strings.Repeat(mark, len(sum)) })
			default:
				fields[path] = value
			}
			if secret && (strings.HasPrefix(path, ".data.") || strings.HasPrefix(path, ".stringData.")) {
				fields[path] = nil
			}
		})
		all = append(all, fields)
	}
	return all
}
