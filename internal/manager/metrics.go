// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/cluster-chandler/chandler/internal/version"
)

// buildInfo says which versions run.
var buildInfo = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "chandler_build_info",
	Help: "1, with the version of this process.",
}, []string{"version"})

func init() {
	metrics.Registry.MustRegister(buildInfo)
	buildInfo.WithLabelValues(version.Get()).Set(1)
}
