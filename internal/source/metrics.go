// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/cluster-chandler/chandler/internal/source/artifact"
	"github.com/cluster-chandler/chandler/internal/source/failure"
)

const (
	// resultSuccess is the result of a request without an error; others are the error's reason.
	resultSuccess = "Success"
	// maxHosts is how many hosts have series of their own. Users name hosts: without a
	// limit, they could make as many series as they like.
	maxHosts = 64
	// otherHosts is the label of all beyond.
	otherHosts = "other"
)

// No metric has a label for a cluster, an object, or an address: a fleet may have
// thousands, and an address may hold a secret.
var (
	requests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "chandler_source_requests_total",
		Help: "Number of times that a source on another host was asked, by kind (oci, helm, http, github), host, and result: Success, or why it failed.",
	}, []string{"kind", "host", "result"})

	requestSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "chandler_source_request_duration_seconds",
		Help: "How long sources on other hosts took to answer, with all requests that it took, by kind and host.",
		// From 10 ms, a registry next door, to a minute, when a request is ended.
		Buckets: []float64{.01, .05, .1, .5, 1, 5, 10, 30, 60},
	}, []string{"kind", "host"})

	artifactBytes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "chandler_source_artifact_bytes_total",
		Help: "Size of the archives that were fetched from other hosts, by kind and host.",
	}, []string{"kind", "host"})

	lastRequest = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "chandler_source_last_request_timestamp_seconds",
		Help: "When a source on another host was last asked, with success or not, by kind and host.",
	}, []string{"kind", "host"})

	lastSuccess = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "chandler_source_last_success_timestamp_seconds",
		Help: "When a source on another host was last asked with success, by kind and host.",
	}, []string{"kind", "host"})
)

func init() {
	metrics.Registry.MustRegister(requests, requestSeconds, artifactBytes, lastRequest, lastSuccess)
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

// protocol of a source on another host.
func (r Reference) protocol() string {
	switch {
	case r.Chart.OCI != nil:
		return "oci"
	case r.Chart.HTTP != nil:
		return "http"
	case r.Chart.GitHub != nil:
		return "github"
	}
	return "helm"
}

func countRequest(ref Reference, started, ended time.Time, err error) {
	host, _ := ref.host()
	kind, host := ref.protocol(), hosts.of(host)
	requestSeconds.WithLabelValues(kind, host).Observe(ended.Sub(started).Seconds())
	lastRequest.WithLabelValues(kind, host).Set(float64(ended.Unix()))
	result := resultSuccess
	if err != nil {
		result = failure.SourceUnavailable
		if failed := new(failure.Error); errors.As(err, &failed) {
			result = failed.Reason
		}
	} else {
		lastSuccess.WithLabelValues(kind, host).Set(float64(ended.Unix()))
	}
	requests.WithLabelValues(kind, host, result).Inc()
}

func countArtifact(ref Reference, got artifact.Content) {
	host, _ := ref.host()
	artifactBytes.WithLabelValues(ref.protocol(), hosts.of(host)).Add(float64(got.Bytes()))
}
