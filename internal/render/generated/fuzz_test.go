// SPDX-License-Identifier: Apache-2.0

package generated_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/test/must"
)

// FuzzGenerated has a record with another text for the value of a function, and with a key that no rendering wrote.
// The objects are the same, but for what the data of Secrets and the value of a ConfigMap are.
func FuzzGenerated(f *testing.F) {
	b := newBench(f)
	var text strings.Builder
	functions := slices.Sorted(maps.Keys(generating))
	functions = slices.DeleteFunc(functions, func(function string) bool { // 2,048 bits take long
		return isCert(function) && !strings.HasSuffix(function, "WithKey")
	})
	for _, function := range functions {
		name := strings.ToLower(function)
		v := quoted(function)
		text.WriteString(object("Secret", name, "stringData: {v: "+v+", w: x}\n") + object("ConfigMap", name, "data: {v: "+v+", w: x}\n"))
		if !isCert(function) && function != "genPrivateKey" && function != "randAscii" {
			text.WriteString(object("Secret", name+"-plain", "stringData: {v: "+value(function)+", w: x}\n") + object("ConfigMap", name+"-plain", "data: {v: "+value(function)+", w: x}\n"))
		}
	}
	text.WriteString("---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: hook, annotations: {helm.sh/hook: pre-upgrade}}\nspec: {v: {{ randAlpha 9 }}}\n")
	first := b.render(f, text.String(), nil)
	keys := slices.Sorted(maps.Keys(first.Generated))
	f.Fuzz(func(t *testing.T, function uint8, key, value string) {
		earlier := maps.Clone(first.Generated)
		named := functions[int(function)%len(functions)]
		for _, known := range keys {
			if name, _, _ := strings.Cut(known, "/"); name == named {
				earlier[known] = value
			}
		}
		earlier[key] = value
		result := b.render(t, text.String(), earlier)
		must.Equal(t, shapeOf(first), shapeOf(result))
	})
}
