// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/rendering"
)

// TestEqualInputsAreRenderedOnce renders charts for a second cluster, of which something differs.
func TestEqualInputsAreRenderedOnce(t *testing.T) {
	const named = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	versions := job.Facts{KubeVersion: "v1.35.1", APIVersions: []string{"apps/v1", "v1"}}
	for name, tc := range map[string]struct {
		template string
		second   func(*job.Chart)
		shared   bool
	}{
		"nothing":                 {named, func(*job.Chart) {}, true},
		"facts that nobody asked": {named, func(r *job.Chart) { r.Facts = versions }, true},
		"a fact that was asked":   {named + "data: {v: {{ .Capabilities.KubeVersion.Version }}}\n", func(r *job.Chart) { r.Facts = versions }, false},
		"an API that was asked":   {named + "data: {v: {{ .Capabilities.APIVersions.Has `apps/v1` | quote }}}\n", func(r *job.Chart) { r.Facts = versions }, false},
		"other values":            {named, func(r *job.Chart) { r.Values = map[string]any{"a": "b"} }, false},
		"another namespace":       {named, func(r *job.Chart) { r.Release.Namespace = "other" }, false},
		"an upgrade":              {named, func(r *job.Chart) { r.Release.Upgrade = true }, false},
		"other files": {named, func(r *job.Chart) {
			r.Files = append(slices.Clone(r.Files), artifact.File{Name: "x", Data: []byte("y")})
		}, false},
		"nothing, with a password":   {named + "data: {v: {{ randAlphaNum 8 }}}\n", func(*job.Chart) {}, false},
		"nothing, with the time":     {named + "data: {v: {{ now | unixEpoch | quote }}}\n", func(*job.Chart) {}, false},
		"nothing, with a lookup":     {named + "data: {v: {{ lookup `v1` `Secret` `x` `y` | toJson | quote }}}\n", func(*job.Chart) {}, false},
		"what a Secret has":          {named, func(r *job.Chart) { r.Sensitive = []string{"secret"} }, false},
		"what was generated earlier": {named, func(r *job.Chart) { r.Generated = job.Generated{"a/b/c/d/e/f": "x"} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rendering.NewRenderer(t, func(o *render.Options) { o.Workers = 1 })
			req := rendering.ChartJob(rendering.ChartWith(tc.template))
			req.Facts = job.Facts{KubeVersion: "v1.36.3", APIVersions: []string{"v1"}}
			first := rendering.MustChart(t, r, req)
			tc.second(&req)
			if second := rendering.MustChart(t, r, req); tc.shared && first.Manifest != second.Manifest {
				t.Errorf("got %q for the first, and %q for the second", first.Manifest, second.Manifest)
			}
			if n := r.Served(); n == 1 != tc.shared {
				t.Errorf("%d renderings, shared: %t", n, tc.shared)
			}
		})
	}
}

// TestDigestStandsForFiles shares an answer by the digest of a chart, whose files aren't hashed again then.
func TestDigestStandsForFiles(t *testing.T) {
	r := rendering.NewRenderer(t, func(o *render.Options) { o.Workers = 1 })
	for _, step := range []struct {
		digest, text string
		renderings   int64
	}{{"sha256:a", "one", 1}, {"sha256:a", "two", 1}, {"sha256:b", "two", 2}, {"", "two", 3}, {"", "two", 3}, {"", "three", 4}} {
		req := rendering.ChartJob(rendering.ChartWith("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + step.text + "}\n"))
		req.Digest = step.digest
		rendering.MustChart(t, r, req)
		must.Equal(t, step.renderings, int64(r.Served()), step.digest+" with "+step.text)
	}
}

// TestEqualFilesAreBuiltOnce has two clusters ask for the same kustomization, and the same manifests.
func TestEqualFilesAreBuiltOnce(t *testing.T) {
	files := []artifact.File{
		{Name: "kustomization.yaml", Data: []byte("resources: [a.yaml]\n")},
		{Name: "a.yaml", Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")},
	}
	r := rendering.NewRenderer(t, func(o *render.Options) { o.Workers = 1 })
	for name, req := range map[string]job.Files{
		"kustomization": {Files: files, Kustomization: true}, "manifests": {Files: files[1:]},
	} {
		before := r.Served()
		req.Release = job.Release{Name: "a", Namespace: "b"}
		for range 2 {
			if result, err := r.Files(t.Context(), req); err != nil || len(result.Objects) != 1 {
				t.Fatalf("%s: %v, %v", name, result, err)
			}
		}
		must.Equal(t, 1, r.Served()-before, name)
	}
}

// TestEqualTemplatesAreExecutedOnce has the values and names of a cluster made again, and of one that differs.
func TestEqualTemplatesAreExecutedOnce(t *testing.T) {
	r := rendering.NewRenderer(t, func(o *render.Options) { o.Workers = 1 })
	for i, name := range []string{"a", "a", "b"} {
		data := map[string]any{"Cluster": map[string]any{"name": name}}
		text, err := r.Template(t.Context(), job.Template{Name: "x", Text: "{{ .Cluster.name }}", Data: data})
		if err != nil || text != name {
			t.Errorf("got %q, %v", text, err)
		}
		names, err := r.Names(t.Context(), job.Names{Field: "x", Templates: []string{"{{ .Cluster.name }}"}, Data: data})
		if err != nil || !slices.Equal(names, []string{name}) {
			t.Errorf("got %q, %v", names, err)
		}
		if n, want := r.Served(), []int{2, 2, 4}[i]; n != want {
			t.Errorf("cluster %d: %d requests, want %d", i, n, want)
		}
	}
}

// TestSharedObjectsAreTheCallersOwn changes what one got. The next one gets it unchanged.
func TestSharedObjectsAreTheCallersOwn(t *testing.T) {
	r := rendering.NewRenderer(t)
	req := rendering.ChartJob(rendering.ChartWith(rendering.ConfigMap))
	first := rendering.MustChart(t, r, req)
	want := first.Objects[0].DeepCopy()
	first.Objects[0].SetName("changed")
	first.FactsUsed.KubeVersion = "changed"
	maps.Copy(first.Objects[0].Object, map[string]any{"data": nil})
	second := rendering.MustChart(t, r, req)
	if second.Objects[0].GetName() != want.GetName() || second.FactsUsed.KubeVersion == "changed" || second.Objects[0].Object["data"] == nil != (want.Object["data"] == nil) {
		t.Errorf("got %v, want %v", second.Objects[0].Object, want.Object)
	}
}

// TestManyClustersAtOnce has clusters ask for the same at the same time.
func TestManyClustersAtOnce(t *testing.T) {
	r := rendering.NewRenderer(t, func(o *render.Options) { o.Workers = 1 })
	ctx := budget.WithTenant(t.Context(), budget.Tenant{Namespace: "team"})
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if _, err := r.Chart(ctx, rendering.ChartJob(rendering.ChartWith(rendering.ConfigMap))); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	must.Equal(t, 1, r.Served(), "renderings")
}

// A job that took all the time of a worker isn't tried again at once, by whomever. Another job is.
func TestKilledRenderingsArePaused(t *testing.T) {
	long.InCI(t)
	r := rendering.NewRenderer(t, func(o *render.Options) { o.Timeout = 500 * time.Millisecond })
	now := time.Now()
	r.SetClock(func() time.Time { return now })
	spin := rendering.ChartJob(rendering.ChartWith("{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}"))
	killed := func() bool {
		before := r.PIDs()
		_, err := r.Chart(t.Context(), spin)
		rendering.WantReason(t, err, job.ReasonRenderTimeout)
		after := r.PIDs()
		return len(before) == 0 || len(after) == 0
	}
	if !killed() {
		t.Error("the first wasn't tried")
	}
	for pause := render.FirstPause; pause <= 4*render.FirstPause; pause *= 2 {
		mustRender(t, r) // a worker is there now
		now = now.Add(pause - time.Second)
		if killed() {
			t.Errorf("it was tried within %s", pause)
		}
		now = now.Add(time.Second)
		if !killed() {
			t.Errorf("it wasn't tried after %s", pause)
		}
	}
}
