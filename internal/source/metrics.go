// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/series"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// ResultSuccess is the result of a request without an error.
const ResultSuccess = "Success"

// count counts a look at the reference's source.
func count(ref reference.Reference, started, ended time.Time, err error) {
	kind, host := seriesOf(ref)
	result := ResultSuccess
	requestSeconds.WithLabelValues(kind, host).Observe(ended.Sub(started).Seconds())
	lastRequest.WithLabelValues(kind, host).Set(float64(ended.Unix()))
	if err == nil {
		lastSuccess.WithLabelValues(kind, host).Set(float64(ended.Unix()))
	} else {
		result = failure.Of(err).Reason
	}
	requests.WithLabelValues(kind, host, result).Inc()
}

// counted counts a look at what is at hand, which takes no request while nothing changed.
func counted[T any](clock clock.PassiveClock, ref reference.Reference, look func() (T, error)) (T, error) {
	started := clock.Now()
	got, err := look()
	if !errors.Is(err, context.Canceled) { // else nobody waits for it any more
		count(ref, started, clock.Now(), err)
	}
	return got, err
}

// countBytes counts content that a source gave.
func countBytes(ref reference.Reference, got artifact.Content) {
	kind, host := seriesOf(ref)
	artifactBytes.WithLabelValues(kind, host).Add(float64(got.Bytes()))
}

// hosts that have series of their own. Users name hosts: without a limit, they could make as many series as they like.
var hosts = series.Bounded(64)

// No metric here has a label for a cluster, an object, or an address: a fleet may have
// thousands, and an address may hold a secret.
var (
	requests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "chandler_source_requests_total",
		Help: "Number of times that sources were asked, by kind (the field of the source, in lower case), host (empty of a path, and of objects), and result: Success, or why it failed.",
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
)

func init() {
	metrics.Registry.MustRegister(requests, requestSeconds, artifactBytes, lastRequest, lastSuccess)
}

// seriesOf returns the kind and host of the reference's source; the host is empty of what is at hand.
func seriesOf(r reference.Reference) (kind, host string) {
	kind = strings.ToLower(r.Type())
	if !r.Remote() {
		return kind, ""
	}
	host, _ = r.Host()
	return kind, hosts.Label(host)
}
