// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/test/hostile"
	"github.com/cluster-chandler/chandler/test/long"
)

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
	deepYAML := configMap + "data: " + strings.Repeat("[", 200_000)
	aliases := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\na: &a [" + strings.Repeat("x,", 50) + "x]\n"
	for i, prev := range strings.Split("abcdefgh", "") {
		next := string(rune('b' + i))
		aliases += next + ": &" + next + " [" + strings.TrimSuffix(strings.Repeat("*"+prev+",", 50), ",") + "]\n"
	}
	nested := configMap + "data: " + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000)
	manyObjects := `{{ range until 6000 }}---` + "\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a{{ . }}}\n{{ end }}"

	charts := map[string]struct {
		files  []artifact.File
		reason string
	}{
		"work without end":               {template1(endless), ReasonRenderTimeout},
		"work that doubles with levels":  {template1(doubling(40)), ReasonRenderTimeout},
		"a list of a billion":            {template1(`{{ range until 1000000000 }}{{ end }}`), ReasonOutOfMemory},
		"a string of 4 GB":               {template1(`{{ repeat 4000000000 "x" }}`), ReasonOutOfMemory},
		"a string doubled in a loop":     {template1(`{{ $s := "xxxxxxxx" }}{{ range until 40 }}{{ $s = cat $s $s }}{{ end }}`), ReasonOutOfMemory},
		"20 MB of output":                {template1(`{{ range until 20 }}{{ repeat 1000000 "x" }}{{ end }}`), ReasonOutputTooLarge},
		"a template that calls itself":   {template1(`{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}`), ReasonTemplateFailed},
		"an include of itself":           {template1(`{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`), ReasonTemplateFailed},
		"a tpl of itself":                {template1(`{{ $t := "{{ tpl .t . }}" }}{{ tpl $t (dict "t" $t "Template" .Template) }}`), ReasonOutOfMemory},
		"6000 objects":                   {template1(manyObjects), ReasonOutputTooLarge},
		"YAML 200,000 levels deep":       {template1(deepYAML), ReasonManifestInvalid},
		"an object 9000 levels deep":     {template1(nested), ReasonManifestInvalid},
		"YAML aliases that multiply":     {template1(aliases), ReasonManifestInvalid},
		"random strings without end":     {template1(`{{ range until 1000000 }}{{ randAlphaNum 100 }}{{ end }}`), ReasonOutputTooLarge},
		"a values file of aliases":       {chartOf(map[string]string{"values.yaml": aliases, "templates/a.yaml": configMap}), ReasonChartInvalid},
		"a dictionary that holds itself": {template1(`{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ $d }}`), ReasonTemplateFailed},
		"a schema 100,000 levels deep":   {chartOf(map[string]string{"values.schema.json": strings.Repeat(`{"not":`, 100_000) + "{}" + strings.Repeat("}", 100_000)}), ReasonChartInvalid},
		"a subchart that is no archive":  {chartOf(map[string]string{"charts/a.tgz": "no archive"}), ReasonChartInvalid},
		"a division by zero":             {template1(`{{ div 1 0 }}`), ReasonTemplateFailed},
		"an expression of great nesting": {template1("{{ " + strings.Repeat("(", 200_000) + "1" + strings.Repeat(")", 200_000) + " }}"), ReasonTemplateFailed},
	}
	r := newRenderer(t, func(o *Options) { o.Timeout = 5 * time.Second })
	patient := newRenderer(t, func(o *Options) { o.Timeout = 2 * time.Minute }) // to fill the memory takes long on a busy machine

	// Other people's renderings go on meanwhile, and all of them succeed.
	others := newGoodNeighbour(t, r)
	for name, c := range charts {
		t.Run(name, func(t *testing.T) {
			started := time.Now()
			of := r
			if c.reason == ReasonOutOfMemory {
				of = patient
			}
			_, err := of.Chart(context.Background(), requestFor(c.files))
			wantReason(t, err, c.reason)
			t.Logf("%s: %v", time.Since(started).Round(time.Millisecond), err)
		})
	}
	others.stop()

	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	if !raceDetector && stats.HeapInuse > 300<<20 {
		t.Errorf("the parent's heap grew to %d MiB", stats.HeapInuse>>20)
	}
}

// TestChartsWithManyDependencies has workers read what charts say they depend on. Whatever
// comes of it, it ends, and says why.
func TestChartsWithManyDependencies(t *testing.T) {
	long.Test(t)
	r := newRenderer(t, func(o *Options) { o.Timeout = 5 * time.Second })
	others := newGoodNeighbour(t, r)
	for name, c := range hostile.Charts() {
		t.Run(name, func(t *testing.T) {
			_, err := r.Chart(context.Background(), requestFor(unpack(t, c.Make(t))))
			if failed, ok := errors.AsType[*Error](err); err != nil && (!ok || failed.Reason == "") {
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

func newGoodNeighbour(t *testing.T, r *Renderer) *goodNeighbour {
	g := &goodNeighbour{t: t, done: make(chan struct{})}
	g.wg.Go(func() {
		for {
			select {
			case <-g.done:
				return
			default:
			}
			if _, err := r.Chart(context.Background(), requestFor(template1(configMap))); err != nil {
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
		"work without end":             {endless, ReasonRenderTimeout},
		"a list of a billion":          {`{{ range until 1000000000 }}{{ end }}`, ReasonOutOfMemory},
		"output without end":           {`{{ range until 1000000 }}{{ repeat 1000 "x" }}{{ end }}`, ReasonOutputTooLarge},
		"a template that calls itself": {`{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}`, ReasonTemplateFailed},
	}
	r := newRenderer(t, func(o *Options) { o.Timeout = 5 * time.Second })
	for name, bomb := range bombs {
		t.Run(name, func(t *testing.T) {
			_, err := r.Template(context.Background(), TemplateRequest{Name: "x", Text: bomb.text})
			wantReason(t, err, bomb.reason)
		})
	}
	if _, err := r.Template(context.Background(), TemplateRequest{Name: "x", Text: "fine"}); err != nil {
		t.Errorf("after the bombs: %v", err)
	}
}
