// SPDX-License-Identifier: Apache-2.0

package render

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/cluster-chandler/chandler/internal/render/sandbox"
)

// renderingsTotal has no label for a cluster or a chart: a fleet may have thousands.
var renderingsTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "chandler_renderings_total",
	Help: "Number of times that a chart, a kustomization or manifests were rendered, by result: Rendered, Shared (with an equal input), or Failed.",
}, []string{"result"})

// workersFiltered is for alerts: without a filter, a fault in a library is one fence from the manager.
var workersFiltered = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
	Name: "chandler_render_seccomp",
	Help: "1 if seccomp filters the system calls of the processes that render charts, 0 if it can't.",
}, func() float64 {
	if sandbox.WhyUnfiltered() != nil {
		return 0
	}
	return 1
})

func init() { metrics.Registry.MustRegister(renderingsTotal, workersFiltered) }

// Results of a rendering.
const (
	resultRendered = "Rendered"
	resultShared   = "Shared"
	resultFailed   = "Failed"
)
