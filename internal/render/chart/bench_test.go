// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"testing"

	"github.com/cluster-chandler/chandler/internal/render/chart"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/realdata"
	"github.com/cluster-chandler/chandler/test/rendering"
)

// BenchmarkSteps measures the steps of a rendering within a worker, and all of them: with what an earlier rendering
// generated, as for each upgrade.
func BenchmarkSteps(b *testing.B) {
	for _, archive := range realdata.Measured {
		req := rendering.ChartJob(rendering.RealChart(b, archive))
		limits := job.MostMade
		all := func() (*job.Result, error) {
			result, _, err := chart.Render(&req, limits, func(job.Stage) {})
			return result, err
		}
		first, err := all()
		must.Succeed(b, err)
		req.Generated = first.Generated
		ch, err := chart.LoadChart(req.Files)
		must.Succeed(b, err)
		values, err := chart.Coalesce(ch, nil)
		must.Succeed(b, err)
		measure := func(step string, do func() error) {
			b.Run(archive+"/"+step, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					must.Succeed(b, do())
				}
			})
		}
		measure("load", func() error { _, err := chart.LoadChart(req.Files); return err })
		measure("values", func() error { _, err := chart.Coalesce(ch, nil); return err })
		measure("schema", func() error { return chart.CheckSchemas(ch, values) })
		measure("render", func() error { _, err := all(); return err })
	}
}
