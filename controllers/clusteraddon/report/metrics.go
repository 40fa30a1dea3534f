// SPDX-License-Identifier: Apache-2.0

package report

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/cluster-chandler/chandler/controllers/clusteraddon/result"
)

// The metrics have no label for the cluster or the add-on: a fleet may have thousands.
var (
	deliveries = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "chandler_addon_deliveries_total",
		Help: "Number of times that an add-on of a cluster was worked on, by what was done (install, upgrade, remove, repair) and what came of it: the phase, Gone, or Error for one that is tried again.",
	}, []string{"action", "outcome"})

	readySeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "chandler_addon_ready_duration_seconds",
		Help: "Time from when an add-on of a cluster was first to be installed or upgraded until it was Ready.",
		// From half a second, a small chart, to an hour.
		Buckets: []float64{.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600},
	})

	driftedObjects = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "chandler_drift_objects_total",
		Help: "Number of times that an object in a workload cluster wasn't as it was applied, by what came of it: repaired, or left (by policy, by a pause, or for an error).",
	}, []string{"outcome"})

	upgradeGates = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "chandler_upgrade_gates",
		Help: "Number of clusters whose upgrade of Kubernetes is at a point, by the point and the state of its gate.",
	}, []string{"point", "state"})

	upgradeHeldSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "chandler_upgrade_held_duration_seconds",
		Help: "Time that an upgrade of Kubernetes was held at a point, from when it came there until it might go on.",
		// From a few seconds to a day.
		Buckets: []float64{5, 15, 60, 300, 900, 1800, 3600, 7200, 21600, 86400},
	}, []string{"point"})

	upgradeHolds = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "chandler_upgrade_holds_total",
		Help: "Number of times that an add-on began to hold an upgrade of Kubernetes, by the point and the add-on's name.",
	}, []string{"point", "addon"})
)

func init() {
	metrics.Registry.MustRegister(deliveries, readySeconds, driftedObjects, upgradeGates, upgradeHeldSeconds, upgradeHolds)
	for _, outcome := range []string{"repaired", "left"} {
		driftedObjects.WithLabelValues(outcome)
	}
}

// Count counts what was done.
func Count(did result.Deeds) {
	for _, d := range did.Deliveries {
		deliveries.WithLabelValues(d.Action, d.Outcome).Inc()
	}
	for _, took := range did.ReadyAfter {
		readySeconds.Observe(took.Seconds())
	}
	driftedObjects.WithLabelValues("repaired").Add(float64(did.Repaired))
	driftedObjects.WithLabelValues("left").Add(float64(did.Left))
}
