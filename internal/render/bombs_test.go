// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/sandbox"
	"github.com/cluster-chandler/chandler/test/hostile"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/rendering"
)

// aliases multiply by fifty on each level.
var aliases = func() string {
	text := "a: &a [" + strings.Repeat("x,", 50) + "x]\n"
	for i, prev := range strings.Split("abcdefgh", "") {
		next := string(rune('b' + i))
		text += next + ": &" + next + " [" + strings.TrimSuffix(strings.Repeat("*"+prev+",", 50), ",") + "]\n"
	}
	return text
}()

func TestKustomizationBombs(t *testing.T) {
	long.Test(t)
	levels := func(n, each int) map[string]string {
		files := map[string]string{"x.yaml": rendering.ConfigMap}
		for i := range n {
			var text strings.Builder
			fmt.Fprintf(&text, "namePrefix: p%d-\nresources:\n", i)
			for j := range each {
				next := fmt.Sprintf("l%d-%d", i+1, j)
				if i == n-1 {
					next = fmt.Sprintf("leaf-%d", j)
					files[next+"/kustomization.yaml"] = "resources: [x.yaml]\n"
					files[next+"/x.yaml"] = strings.Replace(rendering.ConfigMap, "name: a", fmt.Sprintf("name: a%d", j), 1)
				}
				fmt.Fprintf(&text, "- ../%s\n", next)
			}
			for j := range each {
				files[fmt.Sprintf("l%d-%d/kustomization.yaml", i, j)] = strings.Replace(text.String(), "-\n", fmt.Sprintf("-%d-\n", j), 1)
			}
		}
		return files
	}
	object := "&o {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"
	million := "apiVersion: v1\nkind: List\nitems:\n- &l {apiVersion: v1, kind: List, items: [" + object + strings.Repeat(", *o", 999) + "]}\n" + strings.Repeat("- *l\n", 1000)
	var manyFiles strings.Builder
	for i := range 6000 {
		fmt.Fprintf(&manyFiles, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a%d}\n", i)
	}
	var doubled strings.Builder
	for i := range 40 {
		fmt.Fprintf(&doubled, "    - {op: copy, from: /x, path: /x/a%d}\n", i)
	}
	one := func(kustomization string, more ...string) map[string]string {
		files := map[string]string{"kustomization.yaml": kustomization, "cm.yaml": rendering.ConfigMap}
		for i := 0; i+1 < len(more); i += 2 {
			files[more[i]] = more[i+1]
		}
		return files
	}
	cases := map[string]struct {
		directory string
		files     map[string]string
		reasons   []string
	}{
		"bases 1100 levels deep":             {"l0-0", levels(1100, 1), []string{job.ReasonKustomizationInvalid}},
		"2^20 ways to one base":              {"l0-0", levels(20, 2), []string{job.ReasonKustomizationInvalid}},
		"a generator of 20 MB":               {"", one("configMapGenerator:\n- {name: a, files: [a, b=a, c=a, d=a, e=a]}\n", "a", strings.Repeat("x", 4<<20)), []string{job.ReasonOutputTooLarge, job.ReasonRenderTimeout}},
		"6000 objects":                       {"", one("resources: [many.yaml]", "many.yaml", manyFiles.String()), []string{job.ReasonOutputTooLarge}},
		"a million objects by anchors":       {"", one("resources: [million.yaml]", "million.yaml", million), []string{job.ReasonOutOfMemory, job.ReasonRenderTimeout, job.ReasonKustomizationInvalid}},
		"aliases that multiply, in a file":   {"", one("resources: [x.yaml]", "x.yaml", rendering.ConfigMap+aliases), []string{job.ReasonOutOfMemory, job.ReasonRenderTimeout, job.ReasonKustomizationInvalid}},
		"aliases that multiply, in the root": {"", one("resources: [cm.yaml]\n" + aliases), []string{job.ReasonKustomizationInvalid}},
		"YAML 200,000 levels deep":           {"", one("resources: [x.yaml]", "x.yaml", rendering.ConfigMap+"data: "+strings.Repeat("[", 200_000)), []string{job.ReasonKustomizationInvalid}},
		"an object 9000 levels deep":         {"", one("resources: [x.yaml]", "x.yaml", rendering.ConfigMap+"data: "+strings.Repeat("[", 9_000)+strings.Repeat("]", 9_000)), []string{job.ReasonManifestInvalid, job.ReasonKustomizationInvalid}},
		"a patch that doubles an object":     {"", one("resources: [cm.yaml]\npatches:\n- target: {kind: ConfigMap}\n  patch: |\n    - {op: add, path: /x, value: {a: b}}\n" + doubled.String()), []string{job.ReasonOutOfMemory}},
	}
	r := rendering.NewRenderer(t, func(o *render.Options) { o.Timeout = 8 * time.Second })
	others := newGoodNeighbour(t, r)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			started := time.Now()
			_, err := r.Files(t.Context(), rendering.KustomizationJob(c.directory, c.files))
			if failed, ok := errors.AsType[*failure.Error](err); !ok || !slices.Contains(c.reasons, failed.Reason) {
				t.Errorf("got %v, want one of %v", err, c.reasons)
			}
			t.Logf("%s: %v", time.Since(started).Round(time.Millisecond), err)
		})
	}
	others.stop()
}

// endless burns CPU without much memory.
const endless = `{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}`

// doubling is a template whose work doubles with each of its levels.
func doubling(levels int) string {
	var b strings.Builder
	b.WriteString(`{{ define "t0" }}x{{ end }}`)
	for i := 1; i <= levels; i++ {
		fmt.Fprintf(&b, `{{ define "t%d" }}{{ $a := include "t%d" . }}{{ $b := include "t%d" . }}{{ end }}`, i, i-1, i-1)
	}
	fmt.Fprintf(&b, `{{ include "t%d" . }}`, levels)
	return b.String()
}

func TestBombs(t *testing.T) {
	long.InCI(t)
	deepYAML := rendering.ConfigMap + "data: " + strings.Repeat("[", 200_000)
	aliases := rendering.ConfigMap + aliases
	nested := rendering.ConfigMap + "data: " + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000)
	manyObjects := `{{ range until 6000 }}---` + "\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a{{ . }}}\n{{ end }}"

	charts := map[string]struct {
		files  []artifact.File
		reason string
	}{
		"work without end":               {rendering.ChartWith(endless), job.ReasonRenderTimeout},
		"work that doubles with levels":  {rendering.ChartWith(doubling(40)), job.ReasonRenderTimeout},
		"a list of a billion":            {rendering.ChartWith(`{{ range until 1000000000 }}{{ end }}`), job.ReasonOutOfMemory},
		"a string of 4 GB":               {rendering.ChartWith(`{{ repeat 4000000000 "x" }}`), job.ReasonOutOfMemory},
		"a string doubled in a loop":     {rendering.ChartWith(`{{ $s := "xxxxxxxx" }}{{ range until 40 }}{{ $s = cat $s $s }}{{ end }}`), job.ReasonOutOfMemory},
		"20 MB of output":                {rendering.ChartWith(`{{ range until 20 }}{{ repeat 1000000 "x" }}{{ end }}`), job.ReasonOutputTooLarge},
		"a template that calls itself":   {rendering.ChartWith(`{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}`), job.ReasonTemplateFailed},
		"an include of itself":           {rendering.ChartWith(`{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`), job.ReasonTemplateFailed},
		"a tpl of itself":                {rendering.ChartWith(`{{ $t := "{{ tpl .t . }}" }}{{ tpl $t (dict "t" $t "Template" .Template) }}`), job.ReasonOutOfMemory},
		"6000 objects":                   {rendering.ChartWith(manyObjects), job.ReasonOutputTooLarge},
		"YAML 200,000 levels deep":       {rendering.ChartWith(deepYAML), job.ReasonManifestInvalid},
		"an object 9000 levels deep":     {rendering.ChartWith(nested), job.ReasonManifestInvalid},
		"YAML aliases that multiply":     {rendering.ChartWith(aliases), job.ReasonManifestInvalid},
		"random strings without end":     {rendering.ChartWith(`{{ range until 1000000 }}{{ randAlphaNum 100 }}{{ end }}`), job.ReasonOutputTooLarge},
		"a values file of aliases":       {rendering.ChartOf(map[string]string{"values.yaml": aliases, "templates/a.yaml": rendering.ConfigMap}), job.ReasonChartInvalid},
		"a dictionary that holds itself": {rendering.ChartWith(`{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ $d }}`), job.ReasonTemplateFailed},
		"a schema 100,000 levels deep":   {rendering.ChartOf(map[string]string{"values.schema.json": strings.Repeat(`{"not":`, 100_000) + "{}" + strings.Repeat("}", 100_000)}), job.ReasonChartInvalid},
		"a subchart that is no archive":  {rendering.ChartOf(map[string]string{"charts/a.tgz": "no archive"}), job.ReasonChartInvalid},
		"a division by zero":             {rendering.ChartWith(`{{ div 1 0 }}`), job.ReasonTemplateFailed},
		"an expression of great nesting": {rendering.ChartWith("{{ " + strings.Repeat("(", 200_000) + "1" + strings.Repeat(")", 200_000) + " }}"), job.ReasonTemplateFailed},
	}
	r := rendering.NewRenderer(t, func(o *render.Options) { o.Timeout = 5 * time.Second })
	patient := rendering.NewRenderer(t, func(o *render.Options) { o.Timeout = 2 * time.Minute }) // for what ends by itself, which takes long on a busy machine

	// Other people's renderings go on meanwhile, and all of them succeed.
	others := newGoodNeighbour(t, r)
	for name, c := range charts {
		t.Run(name, func(t *testing.T) {
			started := time.Now()
			of := patient
			if c.reason == job.ReasonRenderTimeout {
				of = r
			}
			_, err := of.Chart(context.Background(), rendering.ChartJob(c.files))
			rendering.WantReason(t, err, c.reason)
			t.Logf("%s: %v", time.Since(started).Round(time.Millisecond), err)
		})
	}
	others.stop()

	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	if !sandbox.RaceDetector && stats.HeapInuse > 300<<20 {
		t.Errorf("the parent's heap grew to %d MiB", stats.HeapInuse>>20)
	}
}

// TestChartsWithManyDependencies has workers read what charts say they depend on. Whatever
// comes of it, it ends, and says why.
func TestChartsWithManyDependencies(t *testing.T) {
	long.Test(t)
	r := rendering.NewRenderer(t, func(o *render.Options) { o.Timeout = 5 * time.Second })
	others := newGoodNeighbour(t, r)
	for name, c := range hostile.Charts() {
		t.Run(name, func(t *testing.T) {
			_, err := r.Chart(context.Background(), rendering.ChartJob(rendering.Unpack(t, c.Make(t))))
			if failed, ok := errors.AsType[*failure.Error](err); err != nil && (!ok || failed.Reason == "") {
				t.Errorf("it failed without a reason: %v", err)
			}
			t.Log(err)
		})
	}
	others.stop()
}

type goodNeighbour struct {
	t    *testing.T
	done chan struct{}
	wg   sync.WaitGroup
	n    int
}

func newGoodNeighbour(t *testing.T, r *render.Renderer) *goodNeighbour {
	g := &goodNeighbour{t: t, done: make(chan struct{})}
	g.wg.Go(func() {
		for {
			select {
			case <-g.done:
				return
			default:
			}
			if _, err := r.Chart(context.Background(), rendering.ChartJob(rendering.ChartWith(rendering.ConfigMap))); err != nil {
				t.Errorf("a harmless chart failed beside the bombs: %v", err)
				return
			}
			g.n++
			time.Sleep(10 * time.Millisecond)
		}
	})
	return g
}

func (g *goodNeighbour) stop() {
	close(g.done)
	g.wg.Wait()
	if g.n == 0 {
		g.t.Error("no harmless chart was rendered meanwhile")
	}
	g.t.Logf("%d harmless charts were rendered meanwhile", g.n)
}

func TestTemplateBombs(t *testing.T) {
	long.Test(t)
	bombs := map[string]struct{ text, reason string }{
		"work without end":             {endless, job.ReasonRenderTimeout},
		"a list of a billion":          {`{{ range until 1000000000 }}{{ end }}`, job.ReasonOutOfMemory},
		"output without end":           {`{{ range until 1000000 }}{{ repeat 1000 "x" }}{{ end }}`, job.ReasonOutputTooLarge},
		"a template that calls itself": {`{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}`, job.ReasonValuesTemplateFailed},
	}
	r := rendering.NewRenderer(t, func(o *render.Options) { o.Timeout = 5 * time.Second })
	for name, bomb := range bombs {
		t.Run(name, func(t *testing.T) {
			_, err := r.Template(context.Background(), job.Template{Name: "x", Text: bomb.text})
			rendering.WantReason(t, err, bomb.reason)
		})
	}
	if _, err := r.Template(context.Background(), job.Template{Name: "x", Text: "fine"}); err != nil {
		t.Errorf("after the bombs: %v", err)
	}
}
