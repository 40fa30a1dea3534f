// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
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

	requestsByMethod = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "chandler_fleet_requests_total",
		Help: "Number of requests to workload clusters, by HTTP method: WATCH for a GET that watches, DRY_RUN for a write that changes nothing.",
	}, []string{"method"})

	probeSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "chandler_fleet_probe_duration_seconds",
		Help: "Duration of probes (GET /version) of connected clusters, by result: success or failure.",
		// From 1 ms, a cluster next door, to the default timeout of 5 s.
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
	}, []string{"result"})
)

func init() {
	metrics.Registry.MustRegister(clustersByPhase, requestsByMethod, attemptsByReason, probeSeconds)
	for _, phase := range phases {
		clustersByPhase.WithLabelValues(string(phase))
	}
}

func countPhase(phase Phase, change float64) {
	clustersByPhase.WithLabelValues(string(phase)).Add(change)
}

func countRequest(request *http.Request) {
	method := request.Method
	switch {
	case isWatch(request):
		method = "WATCH"
	case method != http.MethodGet && strings.Contains(request.URL.RawQuery, "dryRun="):
		method = "DRY_RUN"
	}
	requestsByMethod.WithLabelValues(method).Inc()
}

func countAttempt(fault *Fault) {
	reason := ReasonConnected
	if fault != nil {
		reason = fault.Reason
	}
	attemptsByReason.WithLabelValues(reason).Inc()
}

func observeProbe(d time.Duration, fault *Fault) {
	result := "success"
	if fault != nil {
		result = "failure"
	}
	probeSeconds.WithLabelValues(result).Observe(d.Seconds())
}
