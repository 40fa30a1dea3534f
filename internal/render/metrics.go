// SPDX-License-Identifier: Apache-2.0

package render

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// renderingsTotal has no label for a cluster or a chart: a fleet may have thousands.
var renderingsTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "chandler_renderings_total",
	Help: "Number of times that a chart, a kustomization or manifests were rendered, by result: Rendered, Shared (with an equal input), or Failed.",
}, []string{"result"})

func init() { metrics.Registry.MustRegister(renderingsTotal) }

// Results of a rendering.
const (
	resultRendered = "Rendered"
	resultShared   = "Shared"
	resultFailed   = "Failed"
)
