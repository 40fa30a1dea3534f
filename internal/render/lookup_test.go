// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/rendering"
)

// TestKnownLookupsAreAnsweredFirst renders a chart whose one lookup leads to another one: on one cluster, and then on a
// second, of which something differs.
func TestKnownLookupsAreAnsweredFirst(t *testing.T) {
	const chart = rendering.ConfigMap + "data: {v: '{{ if .Values.on }}{{ with lookup `v1` `Secret` `a` `one` }}" +
		"{{ (lookup `v1` `Secret` `a` (.data.next | b64dec)).data.next | b64dec }}{{ end }}{{ end }}'}\n"
	answers := func(value string) func(context.Context, []job.Lookup) ([]job.LookupAnswer, error) {
		objects := map[string]map[string]any{"one": rendering.SecretWith("one", "next", "two"), "two": rendering.SecretWith("two", "next", value)}
		return func(_ context.Context, asked []job.Lookup) (found []job.LookupAnswer, _ error) {
			for _, l := range asked {
				found = append(found, job.LookupAnswer{Lookup: l, Object: objects[l.Name]})
			}
			return found, nil
		}
	}
	for name, tc := range map[string]struct {
		second func(*job.Chart)
		tenant string
		value  string
		served int
	}{
		"nothing":            {func(*job.Chart) {}, "team", "first", 1},
		"what is found":      {func(r *job.Chart) { r.Lookup = answers("second") }, "team", "second", 1},
		"nothing is found":   {func(r *job.Chart) { r.Lookup = nil }, "team", "", 1},
		"another chart":      {func(r *job.Chart) { r.Digest = "sha256:b" }, "team", "first", 3},
		"no digest":          {func(r *job.Chart) { r.Digest = "" }, "team", "first", 3},
		"another release":    {func(r *job.Chart) { r.Release.Name = "other" }, "team", "first", 3},
		"another namespace":  {func(r *job.Chart) { r.Release.Namespace = "other" }, "team", "first", 3},
		"another tenant":     {func(*job.Chart) {}, "trudy", "first", 3},
		"values ask nothing": {func(r *job.Chart) { r.Values = map[string]any{"on": false} }, "team", "", 1},
		"values ask nothing, and nothing can be read": {func(r *job.Chart) {
			r.Values = map[string]any{"on": false}
			r.Lookup = func(context.Context, []job.Lookup) ([]job.LookupAnswer, error) { return nil, errors.New("forbidden") }
		}, "team", "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rendering.NewRenderer(t, func(o *render.Options) { o.Workers = 1 })
			req := rendering.ChartJob(rendering.ChartWith(chart))
			req.Digest, req.Values, req.Lookup = "sha256:a", map[string]any{"on": true}, answers("first")
			render := func(tenant string, req job.Chart) (string, int) {
				before := r.Served()
				result, err := r.Chart(budget.WithTenant(t.Context(), budget.Tenant{Namespace: tenant}), req)
				must.Succeed(t, err)
				value, _, _ := unstructured.NestedString(result.Objects[0].Object, "data", "v")
				return value, r.Served() - before
			}
			if value, served := render("team", req); value != "first" || served != 3 {
				t.Fatalf("the first cluster got %q by %d renderings", value, served)
			}
			tc.second(&req)
			if value, served := render(tc.tenant, req); value != tc.value || served != tc.served {
				t.Errorf("the second cluster got %q by %d renderings, want %q by %d", value, served, tc.value, tc.served)
			}
		})
	}
}

// TestKnownLookupsAreBounded has a chart ask for more objects than are remembered.
func TestKnownLookupsAreBounded(t *testing.T) {
	most := 0
	req := rendering.ChartJob(rendering.ChartWith(rendering.ConfigMap + "{{ range until 900 }}{{ $_ := lookup `v1` `Secret` `a` (print .) }}{{ end }}\n"))
	req.Digest = "sha256:" + strings.Repeat("a", 64)
	r := rendering.NewRenderer(t)
	rendering.MustChart(t, r, req) // without a cluster
	for range 3 {
		rounds := []int{}
		req.Lookup = func(_ context.Context, asked []job.Lookup) ([]job.LookupAnswer, error) {
			rounds = append(rounds, len(asked))
			return nil, nil
		}
		rendering.MustChart(t, r, req)
		most = rounds[0]
	}
	if most > 50 {
		t.Errorf("%d objects were asked for before the rendering", most)
	}
}
