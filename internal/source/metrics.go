// SPDX-License-Identifier: Apache-2.0

package source

import (
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/cluster-chandler/chandler/internal/source/reference"
)

const (
	// maxHosts is how many hosts have series of their own. Users name hosts: without a
	// limit, they could make as many series as they like.
	maxHosts = 64
	// otherHosts is the label of all beyond.
	otherHosts = "other"
)

// No metric here has a label for a cluster, an object, or an address: a fleet may have
// thousands, and an address may hold a secret. Those of an object's sources are made of
// [Sources.Checks].
var (
	requests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "chandler_source_requests_total",
		Help: "Number of times that sources were asked, by kind (oci, helm, http, github, path, configmap, secret), host (empty of the last three), and result: Success, or why it failed.",
	}, []string{"kind", "host", "result"})

	requestSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "chandler_source_request_duration_seconds",
		Help: "How long sources took to answer, with all requests that it took, by kind and host.",
		// From 10 ms, a registry next door, to a minute, when a request is ended.
		Buckets: []float64{.01, .05, .1, .5, 1, 5, 10, 30, 60},
	}, []string{"kind", "host"})

	artifactBytes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "chandler_source_artifact_bytes_total",
		Help: "Size of the archives that were fetched, by kind and host.",
	}, []string{"kind", "host"})

	lastRequest = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "chandler_source_last_request_timestamp_seconds",
		Help: "When a source was last asked, with success or not, by kind and host.",
	}, []string{"kind", "host"})

	lastSuccess = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "chandler_source_last_success_timestamp_seconds",
		Help: "When a source was last asked with success, by kind and host.",
	}, []string{"kind", "host"})

	unpackings = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "chandler_source_unpackings_total",
		Help: "Number of times that a chart, or other content, was unpacked and checked. All that use the same content share it, as long as it is in memory.",
	})
)

func init() {
	metrics.Registry.MustRegister(requests, requestSeconds, artifactBytes, lastRequest, lastSuccess, unpackings)
}

// hosts that have series of their own.
var hosts = labels{known: map[string]bool{}}

type labels struct {
	mu    sync.Mutex
	known map[string]bool
}

// of returns the label of a host.
func (l *labels) of(host string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.known[host] {
		if len(l.known) == maxHosts {
			return otherHosts
		}
		l.known[host] = true
	}
	return host
}

// seriesOf the reference's source: its kind and host, which is empty of what is at hand.
func seriesOf(r reference.Reference) (kind, host string) {
	kind = strings.ToLower(r.Type())
	if !r.Remote() {
		return kind, ""
	}
	host, _ = r.Host()
	return kind, hosts.of(host)
}

func countRequest(ref reference.Reference, started, ended time.Time, result string) {
	kind, host := seriesOf(ref)
	requestSeconds.WithLabelValues(kind, host).Observe(ended.Sub(started).Seconds())
	lastRequest.WithLabelValues(kind, host).Set(float64(ended.Unix()))
	if result == ResultSuccess {
		lastSuccess.WithLabelValues(kind, host).Set(float64(ended.Unix()))
	}
	requests.WithLabelValues(kind, host, result).Inc()
}
