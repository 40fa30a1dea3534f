// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
)

func TestRequestsAreCounted(t *testing.T) {
	archive := chartVersion(t, "1.0.0")
	server, dir := serveAt(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/demo.tgz" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(archive)
	})
	hosts = labels{known: map[string]bool{}} // other tests have used up those with series of their own
	sources, clock := remoteSources(t, Options{CredentialsDir: dir})
	digest := artifact.Content{Archive: archive}.Digest()
	expectFetched(t, sources, atAddress(server.URL+"/demo.tgz?sentinel", digest))
	if _, err := sources.Fetch(t.Context(), atAddress(server.URL+"/sentinel.tgz", digest), digest); err == nil {
		t.Error("there is no such archive")
	}
	host := strings.TrimPrefix(server.URL, "http://")
	for result, want := range map[string]float64{
		ResultSuccess:            1, // nobody asks for the digest, which the object names
		failure.ArtifactNotFound: 2, // it is asked first if it would send what is known already
	} {
		if got := testutil.ToFloat64(requests.WithLabelValues("http", host, result)); got != want {
			t.Errorf("%v with result %s, want %v", got, result, want)
		}
	}
	if got := testutil.ToFloat64(artifactBytes.WithLabelValues("http", host)); got != float64(len(archive)) {
		t.Errorf("%v bytes", got)
	}
	if got := testutil.ToFloat64(lastSuccess.WithLabelValues("http", host)); got != float64(clock.Now().Unix()) {
		t.Errorf("last success %v", time.Unix(int64(got), 0))
	}
	clock.Step(time.Hour)
	if _, err := sources.Fetch(t.Context(), atAddress(server.URL+"/sentinel.tgz", digest), digest); err == nil {
		t.Error("there is no such archive")
	}
	asked, answered := testutil.ToFloat64(lastRequest.WithLabelValues("http", host)), testutil.ToFloat64(lastSuccess.WithLabelValues("http", host))
	if asked-answered != time.Hour.Seconds() || asked != float64(clock.Now().Unix()) {
		t.Errorf("asked at %v, with success at %v", asked, answered)
	}
	gathered, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	expectNoSecrets(t, fmt.Sprint(gathered))
}

// However many hosts users name, there are no more series.
func TestSeriesAreBounded(t *testing.T) {
	known := labels{known: map[string]bool{}}
	seen := map[string]bool{}
	for i := range 1000 {
		seen[known.of(fmt.Sprintf("host-%d.example.org", i))] = true
	}
	if len(seen) != maxHosts+1 || !seen[otherHosts] {
		t.Errorf("%d labels", len(seen))
	}
	if got := known.of("host-0.example.org"); got != "host-0.example.org" {
		t.Errorf("a host lost its series: %s", got)
	}
}
