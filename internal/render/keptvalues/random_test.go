// SPDX-License-Identifier: Apache-2.0

package keptvalues_test

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/test/must"
)

// component is a part of a random chart: how it generates something.
type component struct {
	name     string
	form     int
	length   int
	template string
}

// forms write the fields of a component's Secret, of its name and length.
var forms = []string{
	"  v: {{ randAlphaNum LENGTH }}\n",
	"  v: {{ randAlphaNum LENGTH | b64enc }}\n",
	"{{ $v := randAlphaNum LENGTH }}  v: {{ $v }}\n  w: {{ printf \"a:%s\" $v | b64enc | quote }}\n",
	"  v: |\n    name: NAME\n    key: {{ randAlphaNum LENGTH }}\n    more: x\n",
	"  v: {{ include \"password\" LENGTH }}\n",
	"{{ range $i := list 1 2 3 }}  v{{ $i }}: {{ randAlphaNum LENGTH }}\n{{ end }}",
	"{{ $ca := genCA \"ca\" LENGTH }}{{ $c := genSignedCert \"c\" nil nil LENGTH $ca }}  v: {{ $c.Cert | quote }}\n  k: {{ $c.Key | b64enc }}\n",
	"  v: {{ htpasswd \"me\" (randAlphaNum LENGTH) | quote }}\n",
	"  v: {{ uuidv4 }}-{{ randAlphaNum LENGTH | upper }}\n  w: {{ randInt 10000 99999 | quote }}\n",
}

func (c component) text() string {
	return "{{ if not (has " + strconv.Quote(c.name) + " .Values.off) }}\n" +
		secret(c.name, strings.NewReplacer("LENGTH", strconv.Itoa(c.length), "NAME", c.name).Replace(forms[c.form])) + "{{ end }}\n"
}

// TestGeneratedValuesOfRandomCharts switches components on and off, adds some, moves them between
// templates, and gives some other arguments. Where it generated one value, a component keeps it
// until it has other arguments.
func TestGeneratedValuesOfRandomCharts(t *testing.T) {
	for seed := range int64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewSource(seed))
			var components []component
			fresh := func() component {
				form := r.Intn(len(forms))
				return component{fmt.Sprintf("c%d", len(components)), form, 10 + r.Intn(2), fmt.Sprintf("t%d.yaml", r.Intn(3))}
			}
			for range 5 {
				components = append(components, fresh())
			}
			off := map[string]bool{}
			known := map[string]map[string]string{} // fields by component and arguments
			var generated job.Generated
			for step := range 8 {
				for range 1 + r.Intn(2) {
					i := r.Intn(len(components))
					switch r.Intn(5) {
					case 0, 1:
						off[components[i].name] = !off[components[i].name]
					case 2:
						components = slices.Insert(components, i, fresh())
					case 3:
						components[i].template = fmt.Sprintf("t%d.yaml", r.Intn(4))
					case 4:
						components[i].length++
					}
				}
				templates := map[string]string{"templates/_helpers.tpl": `{{ define "password" }}{{ randAlphaNum . }}{{ end }}`}
				for _, c := range components {
					templates["templates/"+c.template] += c.text()
				}
				values := map[string]any{"off": []any{}}
				for name, is := range off {
					if is {
						values["off"] = append(values["off"].([]any), name)
					}
				}
				result := inWorker(t, templates, values, generated)
				generated = result.Generated
				lengths := map[string]int{}
				for _, c := range components {
					lengths[c.name] = c.length
				}
				seen := map[string]string{}
				for _, o := range result.Objects {
					id := fmt.Sprintf("%s of length %d", o.GetName(), lengths[o.GetName()])
					data, _, _ := unstructured.NestedStringMap(o.Object, "stringData")
					if was, ok := known[id]; ok && !maps.Equal(was, data) {
						t.Errorf("step %d: %s changed: %s", step, id, cmp.Diff(was, data))
					}
					known[id] = data
					for key, value := range data {
						if other, twice := seen[value]; twice {
							t.Errorf("step %d: %s of %s is also %s", step, key, id, other)
						}
						seen[value] = id
					}
				}
			}
		})
	}
}

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
