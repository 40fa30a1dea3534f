// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"

	"github.com/cluster-chandler/chandler/test/realdata"
)

// BenchmarkSteps measures the steps of a rendering within a worker, and all of them: with what an earlier rendering
// generated, as for each upgrade.
func BenchmarkSteps(b *testing.B) {
	for _, archive := range realdata.Measured {
		req := requestFor(realChart(b, archive))
		limits := defaultLimits
		all := func() (*Result, error) { result, _, err := renderChart(&req, limits, func(stage) {}); return result, err }
		first, err := all()
		if err != nil {
			b.Fatal(err)
		}
		req.Generated = first.Generated
		ch, err := LoadChart(req.Files)
		if err != nil {
			b.Fatal(err)
		}
		values, err := Coalesce(ch, nil)
		if err != nil {
			b.Fatal(err)
		}
		measure := func(step string, do func() error) {
			b.Run(archive+"/"+step, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := do(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		measure("load", func() error { _, err := LoadChart(req.Files); return err })
		measure("values", func() error { _, err := Coalesce(ch, nil); return err })
		measure("schema", func() error { return CheckSchemas(ch, values) })
		measure("render", func() error { _, err := all(); return err })
	}
}

// BenchmarkWorker measures renderings of Cilium by a worker process. One process had the chart before, another is started
// for it. Certificates are there, or are new.
func BenchmarkWorker(b *testing.B) {
	files := realChart(b, "cilium-1.19.6.tgz")
	r := newRenderer(b)
	first, err := r.Chart(b.Context(), requestFor(files))
	if err != nil {
		b.Fatal(err)
	}
	run := func(name string, generated Generated, one func() *Renderer) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				req := requestFor(files)
				req.Generated = generated
				if _, err := one().Chart(b.Context(), req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("warm, with memory", first.Generated, func() *Renderer { return r })
	run("warm, first time", nil, func() *Renderer { return r })
	run("cold, with memory", first.Generated, func() *Renderer {
		fresh := New(Options{Workers: 1})
		b.Cleanup(fresh.Close)
		return fresh
	})
}
