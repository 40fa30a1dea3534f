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

// memoryMetrics show a budget.
func memoryMetrics(of *budget.Budget) []prometheus.Collector {
	gauge := func(name, help string, value func(budget.Usage) int64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value(of.Usage())) })
	}
	return []prometheus.Collector{
		gauge("chandler_memory_claimed_bytes", "Bytes that answers, records and objects take of --memory-mib.", func(u budget.Usage) int64 { return u.Claimed }),
		gauge("chandler_memory_cached_bytes", "Bytes of --memory-mib that are kept until they are needed otherwise.", func(u budget.Usage) int64 { return u.Cached }),
		gauge("chandler_memory_waiting", "Number of answers, records and objects that wait for memory.", func(u budget.Usage) int64 { return int64(u.Waiting) }),
	}
}
