// SPDX-License-Identifier: Apache-2.0

package keptvalues

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

// withoutSecrets returns the paths of the fields of objects, each with its value, without the data of Secrets in the
// namespace, and without digests. It is a list: a name with dots can make two paths the same.
func withoutSecrets(documents []manifest.Document, namespace string) (all []any) {
	for _, o := range manifest.ObjectsOf(documents) {
		secret := isSecret(o) && cmp.Or(o.GetNamespace(), namespace) == namespace
		walk("", o.Object, itemNumber, func(path string, value any) {
			text, isText := value.(string)
			_, isScalar := scalarText(value)
			switch {
			case !isScalar:
				value = reflect.TypeOf(value) // what is in it has paths of its own
			case secret && (strings.HasPrefix(path, ".data.") || strings.HasPrefix(path, ".stringData.")):
				value = nil
			case isText:
				value = digest.ReplaceAllStringFunc(text, func(sum string) string { return strings.Repeat(mark, len(sum)) })
			}
			all = append(all, path, value)
		})
	}
	return all
}
