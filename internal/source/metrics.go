// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/series"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// Checks are what asking one source came to since the process started. Whatever
// versions it was asked for, it is one source; so it is for all objects that name it
// with the same credentials.
type Checks struct {
	// Last is when it was asked, LastSuccess when with success. Zero: never.
	Last, LastSuccess time.Time
	// Took is how long that took, all together.
	Took time.Duration
	// Bytes of the content that it gave.
	Bytes int64
	// Results says how often it came to what: [ResultSuccess], or the reason of a failure.
	Results map[string]uint64
}

// ResultSuccess is the result of a check without an error.
const ResultSuccess = "Success"

// Checks returns those of the reference's source, that of the bundle if it is in one; false if it
// wasn't asked yet.
func (s *Sources) Checks(ref reference.Reference) (Checks, bool) {
	if ref.Bundle != nil {
		ref = reference.BundleOf(ref.Namespace, ref.Bundle)
	}
	return s.checks.Get(ref.Source())
}

// count counts a look at the reference's source. Only one for which a request was sent is
// in the series of all sources.
func (s *Sources) count(ref reference.Reference, started time.Time, sent bool, err error) {
	ended, result := s.Clock.Now(), ResultSuccess
	if err != nil {
		result = failure.Of(err).Reason
	}
	if sent {
		countRequest(ref, started, ended, result)
	}
	s.checks.Change(ref.Source(), func(known *Checks) {
		known.Last = ended
		if err == nil {
			known.LastSuccess = ended
		}
		known.Took += ended.Sub(started)
		known.Results = maps.Clone(known.Results) // others read the previous ones
		if known.Results == nil {
			known.Results = map[string]uint64{}
		}
		known.Results[result]++
	})
}

// counted counts a look at what is at hand, which takes no request while nothing changed.
func counted[T any](s *Sources, ref reference.Reference, look func() (T, error)) (T, error) {
	started := s.Clock.Now()
	got, err := look()
	if !errors.Is(err, context.Canceled) { // else nobody waits for it any more
		s.count(ref, started, true, err)
	}
	return got, err
}

// countBytes counts content that a source gave.
func (s *Sources) countBytes(ref reference.Reference, got artifact.Content) {
	kind, host := seriesOf(ref)
	artifactBytes.WithLabelValues(kind, host).Add(float64(got.Bytes()))
	s.checks.Change(ref.Source(), func(known *Checks) { known.Bytes += got.Bytes() })
}

// hosts that have series of their own. Users name hosts: without a limit, they could make as many series as they like.
var hosts = series.Bounded(64)

// No metric here has a label for a cluster, an object, or an address: a fleet may have
// thousands, and an address may hold a secret. The metrics of an object's sources are made of
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

// seriesOf returns the kind and host of the reference's source; the host is empty of what is at hand.
func seriesOf(r reference.Reference) (kind, host string) {
	kind = strings.ToLower(r.Type())
	if !r.Remote() {
		return kind, ""
	}
	host, _ = r.Host()
	return kind, hosts.Label(host)
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
