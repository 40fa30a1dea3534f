// SPDX-License-Identifier: Apache-2.0

package keptvalues_test

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cluster-chandler/chandler/internal/render/chart"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/values"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/rendering"
)

// inWorker renders a chart as a worker does, without starting one.
func inWorker(t testing.TB, templates map[string]string, values map[string]any, earlier job.Generated) *job.Result {
	t.Helper()
	req := rendering.ChartJob(rendering.ChartOf(templates))
	req.Values, req.Generated = values, earlier
	return rendering.MustRender(t, req)
}

// fieldsOf are the strings in all objects, by object and field.
func fieldsOf(result *job.Result) map[string]string {
	found := map[string]string{}
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch value := value.(type) {
		case map[string]any:
			for key, v := range value {
				walk(path+"."+key, v)
			}
		case []any:
			for i, v := range value {
				walk(path+"["+strconv.Itoa(i)+"]", v)
			}
		default:
			found[path] = fmt.Sprint(value)
		}
	}
	for _, o := range result.Objects {
		walk(o.GetKind()+" "+o.GetName(), o.Object)
	}
	for _, h := range result.Hooks {
		walk(h.Kind+" "+h.Name, h.Object.Object)
	}
	return found
}

func secret(name, fields string) string {
	return "---\napiVersion: v1\nkind: Secret\nmetadata: {name: " + name + "}\nstringData:\n" + fields
}

func TestGeneratedValuesStayWhereTheyAre(t *testing.T) {
	const redis = "Secret redis.stringData.password"
	const postgres = "Secret postgres.stringData.password"
	password := "  password: {{ randAlphaNum 10 }}\n"
	both := map[string]string{
		"templates/a.yaml": "{{ if .Values.redis }}\n" + secret("redis", password) + "{{ end }}\n",
		"templates/b.yaml": secret("postgres", password),
	}
	one := "{{ if .Values.redis }}  redis: {{ randAlphaNum 10 }}\n{{ end }}  postgres: {{ randAlphaNum 10 }}\n"
	config := "  config: |\n    {{ if .Values.redis }}redis={{ randAlphaNum 10 }}{{ end }}\n    url: tcp://{{ .Values.user }}:{{ randAlphaNum 10 }}@host\n"
	with := func(files map[string]string, name, text string) map[string]string {
		files = maps.Clone(files)
		files["templates/"+name] = text
		return files
	}
	for name, c := range map[string]struct {
		before, after map[string]string // templates
		values        map[string]any    // after
		stay          []string
	}{
		"a component in another template is switched off": {
			before: both, after: both, values: map[string]any{"redis": false}, stay: []string{postgres}},
		"a component in the same template is switched off": {
			before: map[string]string{"templates/a.yaml": secret("all", one)}, after: map[string]string{"templates/a.yaml": secret("all", one)},
			values: map[string]any{"redis": false}, stay: []string{"Secret all.stringData.postgres"}},
		"a template is added before": {before: both, after: with(both, "0.yaml", secret("new", password)), stay: []string{redis, postgres}},
		"a template is added behind": {before: both, after: with(both, "z.yaml", secret("new", password)), stay: []string{redis, postgres}},
		"templates are renamed": {before: both, stay: []string{redis, postgres},
			after: map[string]string{"templates/z.yaml": both["templates/a.yaml"], "templates/m/b.yaml": both["templates/b.yaml"]}},
		"templates are joined": {before: both, stay: []string{redis, postgres},
			after: map[string]string{"templates/z.yaml": both["templates/b.yaml"] + both["templates/a.yaml"]}},
		"a call is added before it in the same field": {
			before: map[string]string{"templates/a.yaml": secret("all", "  a: x-{{ randAlphaNum 10 }}\n")},
			after:  map[string]string{"templates/a.yaml": secret("all", "  0: {{ randAlphaNum 10 }}\n  a: x-{{ randAlphaNum 10 }}\n")},
			stay:   []string{"Secret all.stringData.a"}},
		"a line of a file is left out, and another changes": {
			before: map[string]string{"templates/a.yaml": secret("all", config)}, after: map[string]string{"templates/a.yaml": secret("all", config)},
			values: map[string]any{"user": "else"}, stay: []string{"Secret all.stringData.config"}},
		"it is encoded and in a variable": {
			before: map[string]string{"templates/a.yaml": "{{ $p := randAlphaNum 10 }}\n" + secret("a", "  p: {{ $p }}\n  q: {{ printf \"%s:x\" $p | b64enc }}\n")},
			after:  map[string]string{"templates/a.yaml": "{{ $x := randAlphaNum 10 }}{{ $p := randAlphaNum 10 }}\n" + secret("a", "  new: {{ $x }}\n  q: {{ printf \"%s:x\" $p | b64enc }}\n")},
			stay:   []string{"Secret a.stringData.q"}},
		"it is there as a hash alone": {
			before: map[string]string{"templates/a.yaml": secret("a", "  p: {{ htpasswd \"a\" (randAlphaNum 10) | quote }}\n  q: {{ randAlphaNum 10 | sha256sum }}\n")},
			after: map[string]string{"templates/b.yaml": "{{ $new := randAlphaNum 10 }}" +
				secret("a", "  n: {{ htpasswd \"a\" $new | quote }}\n  p: {{ htpasswd \"a\" (randAlphaNum 10) | quote }}\n  q: {{ randAlphaNum 10 | sha256sum }}\n")},
			stay: []string{"Secret a.stringData.p", "Secret a.stringData.q"}},
		"a CA is in its certificates alone": {
			before: map[string]string{"templates/a.yaml": `{{ $ca := genCA "ca" 9 }}{{ $c := genSignedCert "a" nil nil 9 $ca }}` + secret("a", "  c: {{ $c.Cert | b64enc }}\n  k: {{ $c.Key | quote }}\n")},
			after: map[string]string{"templates/a.yaml": `{{ $n := genCA "ca" 9 }}{{ $d := genSignedCert "a" nil nil 9 $n }}{{ $ca := genCA "ca" 9 }}{{ $c := genSignedCert "a" nil nil 9 $ca }}` +
				secret("a", "  c: {{ $c.Cert | b64enc }}\n  k: {{ $c.Key | quote }}\n") + secret("other", "  n: {{ $d.Cert | quote }}\n")},
			stay: []string{"Secret a.stringData.c", "Secret a.stringData.k"}},
		"what is hashed of another template": {
			before: with(both, "c.yaml", secret("sum", `  sum: x{{ include (print .Template.BasePath "/b.yaml") . | sha256sum }}`)),
			after:  with(with(both, "c.yaml", secret("sum", `  sum: x{{ include (print .Template.BasePath "/b.yaml") . | sha256sum }}`)), "d.yaml", secret("d", password)),
			stay:   []string{redis, postgres, "Secret sum.stringData.sum"}},
	} {
		t.Run(name, func(t *testing.T) {
			on := map[string]any{"redis": true, "user": "me"}
			first := inWorker(t, c.before, on, nil)
			second := inWorker(t, c.after, values.Merge(on, c.values), first.Generated)
			was, is := fieldsOf(first), fieldsOf(second)
			for _, field := range c.stay {
				if c.values["user"] != nil { // the line with the value, and what follows the user in it
					_, was[field], _ = strings.Cut(was[field], "me:")
					_, is[field], _ = strings.Cut(is[field], "else:")
				}
				if was[field] == "" || was[field] != is[field] {
					t.Errorf("%s was %q, is %q", field, was[field], is[field])
				}
			}
			seen := map[string]string{}
			for field, value := range is {
				if other, twice := seen[value]; twice && strings.Contains(field, "stringData") {
					t.Errorf("%s and %s have one value", field, other)
				}
				seen[value] = field
			}
			third := inWorker(t, c.before, on, second.Generated)
			if diff := cmp.Diff(was, fieldsOf(third)); diff != "" && c.values["user"] == nil {
				t.Errorf("as it was at first, it differs:\n%s", diff)
			}
		})
	}
}

func TestGeneratedValueInTheNameOfItsObjectStays(t *testing.T) {
	named := "---\napiVersion: v1\nkind: Secret\nmetadata: {name: \"a-{{ $p | lower }}\"}\nstringData: {p: {{ $p | quote }}}\n"
	first := inWorker(t, map[string]string{"templates/a.yaml": "{{ $p := randAlphaNum 10 }}" + named}, nil, nil)
	other := "{{ $x := randAlphaNum 10 }}{{ $p := randAlphaNum 10 }}" + secret("x", "  x: {{ $x }}\n")
	second := inWorker(t, map[string]string{"templates/a.yaml": other + named}, nil, first.Generated)
	for field, value := range fieldsOf(first) {
		if strings.HasSuffix(field, ".p") && fieldsOf(second)[field] != value {
			t.Errorf("%s is no more %s:\n%s", field, value, second.Manifest)
		}
	}
}

// few has room for the places of some of twenty values.
const few = 1200

func twenty(field string) string {
	return secret("a", "{{ range until 20 }}  "+field+"{{ . }}: {{ randAlphaNum 10 }}\n{{ end }}")
}

// withRoom renders a template with so much room for values, in bytes.
func withRoom(t *testing.T, room int, text string, earlier job.Generated) *job.Result {
	t.Helper()
	limits := job.MostMade
	limits.GeneratedBytes = room
	req := rendering.ChartJob(rendering.ChartWith(text))
	req.Generated = earlier
	result, _, err := chart.Render(&req, limits, func(job.Stage) {})
	must.Succeed(t, err)
	return result
}

func TestValuesWithoutRoomForTheirPlacesStay(t *testing.T) {
	first := withRoom(t, few, twenty("p"), nil)
	second := withRoom(t, few, twenty("p"), first.Generated)
	third := withRoom(t, few, twenty("p"), second.Generated)
	if second.Made || third.Made || second.Manifest != first.Manifest || third.Manifest != first.Manifest {
		t.Errorf("it differs: %s", cmp.Diff(fieldsOf(first), fieldsOf(third)))
	}
}

// TestGeneratedValuesAreNewElsewhere has other fields in the end, which get none of the first values.
func TestGeneratedValuesAreNewElsewhere(t *testing.T) {
	without := secret("a", "  z: x\n")
	for name, steps := range map[string][]string{
		"a field with another name":              {secret("a", "  p: {{ randAlphaNum 10 }}\n"), secret("a", "  q: {{ randAlphaNum 10 }}\n")},
		"another line, with none between":        {secret("a", "  p: 'key: a-{{ randAlphaNum 10 }}'\n"), without, secret("a", "  p: 'key: b-{{ randAlphaNum 10 }}'\n")},
		"fields without room, with none between": {twenty("p"), without, twenty("q")},
	} {
		t.Run(name, func(t *testing.T) {
			result := withRoom(t, few, steps[0], nil)
			first := result.Generated
			for _, step := range steps[1:] {
				result = withRoom(t, few, step, result.Generated)
			}
			for _, value := range first {
				if strings.Contains(result.Manifest, value) {
					t.Errorf("%s is in:\n%s", value, result.Manifest)
				}
			}
		})
	}
}
