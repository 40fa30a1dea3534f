// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"testing"

	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/rendering"
)

// BenchmarkWorker measures renderings of Cilium by a worker process. A process had the chart before, or is started
// for it. Certificates are there, or are new.
func BenchmarkWorker(b *testing.B) {
	files := rendering.RealChart(b, "cilium-1.19.6.tgz")
	r := rendering.NewRenderer(b)
	first, err := r.Chart(b.Context(), rendering.ChartJob(files))
	must.Succeed(b, err)
	run := func(name string, generated job.Generated, one func() *render.Renderer) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				req := rendering.ChartJob(files)
				req.Generated = generated
				if _, err := one().Chart(b.Context(), req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("warm, with memory", first.Generated, func() *render.Renderer { return r })
	run("warm, first time", nil, func() *render.Renderer { return r })
	run("cold, with memory", first.Generated, func() *render.Renderer {
		fresh := render.New(render.Options{Workers: 1})
		b.Cleanup(fresh.Close)
		return fresh
	})
}
