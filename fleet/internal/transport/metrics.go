// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cluster-chandler/chandler/fleet/internal/answer"
)

// Requests counts for all connections of the process. It isn't registered here.
var Requests = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "chandler_fleet_requests_total",
	Help: "Number of requests to workload clusters, by HTTP method: WATCH for a GET that watches, DRY_RUN for a write that changes nothing.",
}, []string{"method"})

func countRequest(request *http.Request) {
	method := request.Method
	switch {
	case answer.IsWatch(request):
		method = "WATCH"
	case method != http.MethodGet && strings.Contains(request.URL.RawQuery, "dryRun="):
		method = "DRY_RUN"
	}
	Requests.WithLabelValues(method).Inc()
}
