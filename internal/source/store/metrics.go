// SPDX-License-Identifier: Apache-2.0

package store

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	lookups = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "chandler_source_cache_lookups_total",
		Help: "Number of archives looked for in the cache on disk, by result: hit or miss.",
	}, []string{"result"})

	evictions = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "chandler_source_cache_evictions_total",
		Help: "Number of archives that were dropped from the cache on disk to make room.",
	})

	corruptions = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "chandler_source_cache_corruptions_total",
		Help: "Number of archives in the cache on disk that were damaged, and dropped.",
	})

	bytesKept = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "chandler_source_cache_bytes",
		Help: "Size of the cache on disk, as of the last time something was added.",
	})

	usable = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "chandler_source_cache_usable",
		Help: "Whether the cache on disk can be used: 0 if there is none, or its disk is full or read-only, or does not answer.",
	})
)

func init() {
	metrics.Registry.MustRegister(lookups, evictions, corruptions, bytesKept, usable)
	for _, result := range []string{"hit", "miss"} {
		lookups.WithLabelValues(result)
	}
}
