// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/cluster-chandler/chandler/fleet/budget"
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

// MemoryMetrics show what a budget counts.
func MemoryMetrics(of *budget.Budget) []prometheus.Collector {
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "chandler_memory_claimed_bytes",
			Help: "Bytes of --memory-mib that answers, records and objects take.",
		}, func() float64 { return float64(of.Usage().Claimed) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "chandler_memory_cached_bytes",
			Help: "Bytes of --memory-mib that are kept until others need them.",
		}, func() float64 { return float64(of.Usage().Cached) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "chandler_memory_waiting",
			Help: "Number of answers, records and objects that wait for memory.",
		}, func() float64 { return float64(of.Usage().Waiting) }),
	}
}
