// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var unpackings = prometheus.NewCounter(prometheus.CounterOpts{
	Name: "chandler_source_unpackings_total",
	Help: "Number of times that a chart, or other content, was unpacked and checked. All that use the same content share it, as long as it is in memory.",
})

func init() { metrics.Registry.MustRegister(unpackings) }
