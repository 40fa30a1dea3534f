// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"encoding/base64"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// cluster answers lookups from objects by their names, and counts its calls.
type cluster struct {
	objects map[string]map[string]any
	calls   int
}

func (c *cluster) lookup(_ context.Context, asked []Lookup) ([]LookupAnswer, error) {
	c.calls++
	var answers []LookupAnswer
	for _, a := range asked {
		answers = append(answers, LookupAnswer{Lookup: a, Object: c.objects[a.Name]})
	}
	return answers, nil
}

func secretWith(name, key, value string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name},
		"data": map[string]any{key: base64.StdEncoding.EncodeToString([]byte(value))},
	}
}

func TestLookupsAreAskedForOnlyWhereThereAreSome(t *testing.T) {
	const found = `{{ (lookup "v1" "Secret" "a" "one").data.next | default "nothing" | b64dec }}`
	for name, c := range map[string]struct {
		template string
		calls    int
		value    string
	}{
		"none":                {template: "text", calls: 0, value: "text"},
		"one":                 {template: found, calls: 1, value: "two"},
		"one that leads on":   {template: `{{ with lookup "v1" "Secret" "a" "one" }}{{ (lookup "v1" "Secret" "a" (.data.next | b64dec)).data.end | b64dec }}{{ end }}`, calls: 2, value: "end"},
		"what nobody has":     {template: `{{ (lookup "v1" "Secret" "a" "three").data | default "nothing" }}`, calls: 1, value: "nothing"},
		"a chart that fails":  {template: `{{ (required "no password" (lookup "v1" "Secret" "a" "one").data).next | b64dec }}`, calls: 1, value: "two"},
		"one that is changed": {template: `{{ $x := set (lookup "v1" "Secret" "a" "one") "data" 1 }}` + found, calls: 1, value: "two"},
	} {
		t.Run(name, func(t *testing.T) {
			live := &cluster{objects: map[string]map[string]any{"one": secretWith("one", "next", "two"), "two": secretWith("two", "end", "end")}}
			req := requestFor(template1(configMap + "data: {value: '" + c.template + "'}\n"))
			req.Lookup = live.lookup
			result, err := newRenderer(t).Chart(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			value, _, _ := unstructured.NestedString(result.Objects[0].Object, "data", "value")
			if value != c.value || live.calls != c.calls {
				t.Errorf("got %q after %d calls, want %q after %d", value, live.calls, c.value, c.calls)
			}
		})
	}
}

func TestLookupsAreBounded(t *testing.T) {
	endless := &cluster{objects: map[string]map[string]any{}}
	for i := range 10 {
		name := strings.Repeat("a", i+1)
		endless.objects[name] = secretWith(name, "next", name+"a")
	}
	nested := configMap + `{{ $name := "a" }}{{ range until 12 }}{{ $name = (lookup "v1" "Secret" "" $name).data.next | default "" | b64dec }}{{ end }}` + "\n"
	many := configMap + `{{ range until 1001 }}{{ lookup "v1" "Secret" "" (print .) }}{{ end }}` + "\n"
	for _, text := range []string{nested, many} {
		req := requestFor(template1(text))
		req.Lookup = endless.lookup
		_, err := newRenderer(t).Chart(t.Context(), req)
		wantReason(t, err, ReasonTemplateFailed, "lookup")
	}
}

func TestWhatLookupFindsInSecretsIsHidden(t *testing.T) {
	live := &cluster{objects: map[string]map[string]any{"one": secretWith("one", "password", "hunter2hunter2")}}
	req := requestFor(template1(`{{ fail (print "it is " ((lookup "v1" "Secret" "a" "one").data.password | default "" | b64dec)) }}`))
	req.Lookup = live.lookup
	_, err := newRenderer(t).Chart(t.Context(), req)
	wantReason(t, err, ReasonTemplateFailed, "[hidden]")
	if strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
}
