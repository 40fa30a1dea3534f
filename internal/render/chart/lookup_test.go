// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/rendering"
)

// cluster answers lookups from objects by their names, and counts its calls.
type cluster struct {
	objects map[string]map[string]any
	calls   int
}

func (c *cluster) lookup(_ context.Context, asked []job.Lookup) ([]job.LookupAnswer, error) {
	c.calls++
	var answers []job.LookupAnswer
	for _, a := range asked {
		answers = append(answers, job.LookupAnswer{Lookup: a, Object: c.objects[a.Name]})
	}
	return answers, nil
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
			live := &cluster{objects: map[string]map[string]any{"one": rendering.SecretWith("one", "next", "two"), "two": rendering.SecretWith("two", "end", "end")}}
			req := rendering.ChartJob(rendering.ChartWith(rendering.ConfigMap + "data: {value: '" + c.template + "'}\n"))
			req.Lookup = live.lookup
			result, err := rendering.NewRenderer(t).Chart(t.Context(), req)
			must.Succeed(t, err)
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
		endless.objects[name] = rendering.SecretWith(name, "next", name+"a")
	}
	nested := rendering.ConfigMap + `{{ $name := "a" }}{{ range until 12 }}{{ $name = (lookup "v1" "Secret" "" $name).data.next | default "" | b64dec }}{{ end }}` + "\n"
	many := rendering.ConfigMap + `{{ range until 1001 }}{{ lookup "v1" "Secret" "" (print .) }}{{ end }}` + "\n"
	for _, text := range []string{nested, many} {
		req := rendering.ChartJob(rendering.ChartWith(text))
		req.Lookup = endless.lookup
		_, err := rendering.NewRenderer(t).Chart(t.Context(), req)
		rendering.WantReason(t, err, job.ReasonTemplateFailed, "lookup")
	}
}

func TestWhatLookupFindsInSecretsIsHidden(t *testing.T) {
	live := &cluster{objects: map[string]map[string]any{"one": rendering.SecretWith("one", "password", "hunter2hunter2")}}
	req := rendering.ChartJob(rendering.ChartWith(`{{ fail (print "it is " ((lookup "v1" "Secret" "a" "one").data.password | default "" | b64dec)) }}`))
	req.Lookup = live.lookup
	_, err := rendering.NewRenderer(t).Chart(t.Context(), req)
	rendering.WantReason(t, err, job.ReasonTemplateFailed, "[hidden]")
	if strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
}
