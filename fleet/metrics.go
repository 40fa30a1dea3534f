// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cluster-chandler/chandler/fleet/internal/transport"
)

// The metrics have no label for the cluster: a fleet may have thousands.
var (
	clustersByPhase = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "chandler_fleet_clusters",
		Help: "Number of clusters that this instance knows, by the phase of their connection.",
	}, []string{"phase"})

	attemptsByReason = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "chandler_fleet_connection_attempts_total",
		Help: "Number of attempts to connect to a cluster, by reason: Connected, or why it failed.",
	}, []string{"reason"})

	probeSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "chandler_fleet_probe_duration_seconds",
		Help: "Duration of probes (GET /version) of connected clusters, by result: success or failure.",
		// From 1 ms, a cluster next door, to the default timeout of 5 s.
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
	}, []string{"result"})
)

func init() {
	for _, phase := range phases {
		clustersByPhase.WithLabelValues(string(phase))
	}
}

// registerMetrics adds the metrics, which count for all Providers of the process, to a registry that may have them already.
func registerMetrics(at prometheus.Registerer) {
	for _, metric := range []prometheus.Collector{clustersByPhase, attemptsByReason, probeSeconds, transport.Requests} {
		if err := at.Register(metric); err != nil {
			if _, twice := errors.AsType[prometheus.AlreadyRegisteredError](err); !twice {
				panic(err) // another program's metric has the name, as MustRegister says
			}
		}
	}
}

func countPhase(phase Phase, change float64) {
	clustersByPhase.WithLabelValues(string(phase)).Add(change)
}

func countAttempt(fault *transport.Fault) {
	reason := ReasonConnected
	if fault != nil {
		reason = fault.Reason
	}
	attemptsByReason.WithLabelValues(reason).Inc()
}

func observeProbe(d time.Duration, fault *transport.Fault) {
	result := map[bool]string{true: "success", false: "failure"}[fault == nil]
	probeSeconds.WithLabelValues(result).Observe(d.Seconds())
}
