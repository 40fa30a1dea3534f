// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"

	dto "github.com/prometheus/client_model/go"
	repo "helm.sh/helm/v4/pkg/repo/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

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

// What is at hand of a host is no request.
func TestAnIndexAtHandIsNoRequest(t *testing.T) {
	server, _ := startRepository(t, true, false)
	server.publish(t, repo.NewIndexFile(), "1.0.0", "", true)
	sources, _ := remoteSources(t, source.Options{})
	demo := plainly(inRepository(server.URL+"/charts", "1.0.0"))
	none := plainly(demo)
	none.Chart.Helm.Chart = "none"
	// The digest, and the archive.
	expectCounted(t, func() { expectFetched(t, sources, demo) }, 2, requestsTotal, "kind", "helm", "result", source.ResultSuccess)
	expectCounted(t, func() { expectRefused(t, get(t, sources, none), failure.ArtifactNotFound) }, 0, requestsTotal)
}

// Without credentials that can be used nobody is asked.
func TestWhatIsNotSentIsNoRequest(t *testing.T) {
	sources, _ := remoteSources(t, source.Options{CredentialsDir: trusting(t, []byte("no certificate"))})
	ref := inRegistry("oci://127.0.0.1:9/charts/demo", "1.0.0")
	expectCounted(t, func() { expectRefused(t, get(t, sources, ref), failure.SourceUnauthorized) }, 0, requestsTotal)
}

func TestLooksAtWhatIsAtHandAreCounted(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "demo", "Chart.yaml"), "apiVersion: v2\nname: demo\nversion: 1.0.0\n")
	archive := chartVersion(t, "1.0.0")
	c := newCluster(t, charts("team-a", archive), secret("charts", "chart.tgz", string(archive)))
	sources, _ := remoteSources(t, source.Options{ArtifactRoot: root, Client: c})
	for kind, ref := range map[string]reference.Reference{"path": atPath("demo"), "configmap": inConfigMap("team-a", "charts", ""), "secret": inSecret("team-a", "charts", "")} {
		// One look at the digest, and one at the content.
		expectCounted(t, func() { expectFetched(t, sources, ref) }, 2, requestsTotal, "kind", kind, "result", source.ResultSuccess)
	}
	lost := func() { expectRefused(t, get(t, sources, atPath("lost")), failure.ArtifactNotFound) }
	expectCounted(t, lost, 1, requestsTotal, "kind", "path", "result", failure.ArtifactNotFound)
}
