// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	repo "helm.sh/helm/v4/pkg/repo/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/must"
)

// series are those of a metric with these labels, each as name and value in turn.
func series(t testing.TB, name string, labels ...string) []*dto.Metric {
	t.Helper()
	families, err := metrics.Registry.Gather()
	must.Succeed(t, err)
	var found []*dto.Metric
	for _, family := range families {
		for _, one := range family.GetMetric() {
			if family.GetName() != name {
				continue
			}
			is := map[string]string{}
			for _, label := range one.GetLabel() {
				is[label.GetName()] = label.GetValue()
			}
			fits := true
			for i := 0; i < len(labels); i += 2 {
				fits = fits && is[labels[i]] == labels[i+1]
			}
			if fits {
				found = append(found, one)
			}
		}
	}
	return found
}

// sum of the series, of whatever hosts: other tests may have used up those with series of their own.
func sum(t testing.TB, name string, labels ...string) (total float64) {
	t.Helper()
	for _, one := range series(t, name, labels...) {
		total += one.GetCounter().GetValue()
	}
	return total
}

// expectCounted expects the sum of series to grow by so much.
func expectCounted(t *testing.T, do func(), by float64, name string, labels ...string) {
	t.Helper()
	before := sum(t, name, labels...)
	do()
	must.Equal(t, by, sum(t, name, labels...)-before, name, labels)
}

// expectChecks compares results and bytes, and expects the last check at a time.
func expectChecks(t *testing.T, sources *source.Sources, ref reference.Reference, last time.Time, bytes int, want map[string]uint64) {
	t.Helper()
	got, known := sources.Checks(ref)
	if !known || !maps.Equal(got.Results, want) || got.Bytes != int64(bytes) || !got.Last.Equal(last) {
		t.Errorf("%s: %+v (%v), want %v, %d bytes, and the last one at %s", ref, got, known, want, bytes, last)
	}
}

const requestsTotal = "chandler_source_requests_total"

func TestRequestsAreCounted(t *testing.T) {
	archive := chartVersion(t, "1.0.0")
	server, dir := serveAt(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/demo.tgz" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(archive)
	})
	sources, _ := remoteSources(t, source.Options{CredentialsDir: dir})
	good, bad := atAddress(server.URL+"/demo.tgz?sentinel", digestOf(archive)), atAddress(server.URL+"/sentinel.tgz", digestOf(archive))
	fetch := func() { expectFetched(t, sources, good) }
	expectCounted(t, fetch, 1, requestsTotal, "kind", "http", "result", source.ResultSuccess) // nobody asks for the digest
	expectCounted(t, fetch, 0, requestsTotal, "kind", "http")
	expectCounted(t, func() { _, _ = sources.Fetch(t.Context(), bad, digestOf("x")) }, 1, requestsTotal, "kind", "http", "result", failure.ArtifactNotFound)
	again, _ := remoteSources(t, source.Options{CredentialsDir: dir})
	expectCounted(t, func() { expectFetched(t, again, good) }, float64(len(archive)), "chandler_source_artifact_bytes_total", "kind", "http")
	expectCounted(t, func() {
		once, _ := remoteSources(t, source.Options{CredentialsDir: dir})
		expectFetched(t, once, good)
		expectFetched(t, once, good)
	}, 1, "chandler_source_unpackings_total")
	expectNoSecrets(t, fmt.Sprint(series(t, requestsTotal)))
}

// However many hosts users name, there are no more series.
func TestSeriesAreBounded(t *testing.T) {
	sources, clock := remoteSources(t, source.Options{})
	for i := range 100 {
		expectRefused(t, get(t, sources, plainly(inRepository(fmt.Sprintf("http://127.0.0.1:%d", 1+i%9*100+i), "1.0.0"))), failure.SourceUnavailable)
	}
	hosts := map[string]bool{}
	now, told := float64(clock.Now().Unix()), false
	for _, one := range series(t, "chandler_source_last_request_timestamp_seconds") {
		for _, label := range one.GetLabel() {
			if label.GetName() == "host" {
				hosts[label.GetValue()] = true
			}
		}
		told = told || one.GetGauge().GetValue() == now
	}
	if len(hosts) > 64+2 || !hosts["other"] { // what is at hand has none
		t.Errorf("there are %d hosts", len(hosts))
	}
	if !told {
		t.Error("no series says when the last request was")
	}
}

// Two sources of one host are told apart, whatever versions they are asked for; and
// what is at hand is no request.
func TestChecksAreOfEachSource(t *testing.T) {
	server, _ := startRepository(t, true, false)
	archive := server.publish(t, repo.NewIndexFile(), "1.0.0", "", true)
	sources, clock := remoteSources(t, source.Options{})
	demo := plainly(inRepository(server.URL+"/charts", "1.0.0"))
	none := plainly(demo)
	none.Chart.Helm.Chart = "none"
	if _, known := sources.Checks(demo); known {
		t.Error("it was asked before anybody asked")
	}
	expectCounted(t, func() { expectFetched(t, sources, demo) }, 2, requestsTotal, "kind", "helm", "result", source.ResultSuccess)
	begun := clock.Now()
	clock.Step(time.Second)
	expectCounted(t, func() { expectRefused(t, get(t, sources, none), failure.ArtifactNotFound) }, 0, requestsTotal) // the index is at hand

	expectChecks(t, sources, demo, begun, len(archive), map[string]uint64{source.ResultSuccess: 2}) // the digest, and the archive
	expectChecks(t, sources, none, clock.Now(), 0, map[string]uint64{failure.ArtifactNotFound: 1})
	if is, _ := sources.Checks(none); !is.LastSuccess.IsZero() {
		t.Errorf("%+v: it never had success", is)
	}
	other := of("~1", demo)
	other.Chart.Helm.Digest = "sha256:" + strings.Repeat("a", 64)
	expectChecks(t, sources, other, begun, len(archive), map[string]uint64{source.ResultSuccess: 2})
}

// Without credentials that can be used nobody is asked.
func TestWhatIsNotSentIsNoRequest(t *testing.T) {
	sources, clock := remoteSources(t, source.Options{CredentialsDir: trusting(t, []byte("no certificate"))})
	ref := inRegistry("oci://127.0.0.1:9/charts/demo", "1.0.0")
	expectCounted(t, func() { expectRefused(t, get(t, sources, ref), failure.SourceUnauthorized) }, 0, requestsTotal)
	expectChecks(t, sources, ref, clock.Now(), 0, map[string]uint64{failure.SourceUnauthorized: 1})
}

func TestChecksOfWhatIsAtHand(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "demo", "Chart.yaml"), "apiVersion: v2\nname: demo\nversion: 1.0.0\n")
	archive := chartVersion(t, "1.0.0")
	c := newCluster(t, charts("team-a", archive), secret("charts", "chart.tgz", string(archive)))
	sources, clock := remoteSources(t, source.Options{ArtifactRoot: root, Client: c})
	for kind, ref := range map[string]reference.Reference{"path": atPath("demo"), "configmap": inConfigMap("team-a", "charts", ""), "secret": inSecret("team-a", "charts", "")} {
		// One look at the digest, and one at the content.
		expectCounted(t, func() { expectFetched(t, sources, ref) }, 2, requestsTotal, "kind", kind, "result", source.ResultSuccess)
		size := len(archive)
		if kind == "path" {
			size = len("apiVersion: v2\nname: demo\nversion: 1.0.0\n")
		}
		expectChecks(t, sources, ref, clock.Now(), size, map[string]uint64{source.ResultSuccess: 2})
	}
	inBundle := atPath("cni")
	inBundle.Bundle = &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{ConfigMap: &addonsv1.ArtifactReference{Name: "bundle"}}}
	for _, ref := range []reference.Reference{atPath("lost"), inBundle} {
		expectRefused(t, get(t, sources, ref), failure.ArtifactNotFound)
		expectChecks(t, sources, ref, clock.Now(), 0, map[string]uint64{failure.ArtifactNotFound: 1})
	}
}
