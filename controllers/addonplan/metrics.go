// SPDX-License-Identifier: Apache-2.0

package addonplan

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	plans = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "chandler_plans_total",
		Help: "Number of AddonPlans that were finished, by their phase.",
	}, []string{"phase"})

	clusterSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "chandler_plan_cluster_duration_seconds",
		Help:    "Time that it took to ask one cluster for an AddonPlan.",
		Buckets: []float64{.1, .25, .5, 1, 2, 5, 10, 30, 60},
	})
)

func init() {
	metrics.Registry.MustRegister(plans, clusterSeconds)
}
