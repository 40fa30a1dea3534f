// SPDX-License-Identifier: Apache-2.0

package source

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	repo "helm.sh/helm/v4/pkg/repo/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// expectChecks compares results and bytes, and expects the last check at a time.
func expectChecks(t *testing.T, sources *Sources, ref reference.Reference, last time.Time, bytes int, want map[string]uint64) {
	t.Helper()
	got, known := sources.Checks(ref)
	if !known || !maps.Equal(got.Results, want) || got.Bytes != int64(bytes) || !got.Last.Equal(last) {
		t.Errorf("%s: %+v (%v), want %v, %d bytes, and the last one at %s", ref, got, known, want, bytes, last)
	}
}

// Two sources of one host are told apart, whatever versions they are asked for; and
// what is at hand is no request.
func TestChecksAreOfEachSource(t *testing.T) {
	server, _ := startRepository(t, true, false)
	index := repo.NewIndexFile()
	archive := server.publish(t, index, "1.0.0", "", true)
	sources, clock := remoteSources(t, Options{})
	hosts = labels{known: map[string]bool{}} // other tests have used up those with series of their own
	demo, none := inRepository(server.URL+"/charts", "1.0.0"), inRepository(server.URL+"/charts", "1.0.0")
	demo.Chart.Helm.PlainHTTP, none.Chart.Helm.PlainHTTP = ptr.To(true), ptr.To(true)
	none.Chart.Helm.Chart = "none"
	if _, known := sources.Checks(demo); known {
		t.Error("it was asked before anybody asked")
	}
	expectFetched(t, sources, demo)
	begun := clock.Now()
	clock.Step(time.Second)
	_, err := sources.Resolve(t.Context(), none)
	expectReason(t, err, failure.ArtifactNotFound, "")

	expectChecks(t, sources, demo, begun, len(archive), map[string]uint64{ResultSuccess: 2}) // the digest, and the archive
	expectChecks(t, sources, none, clock.Now(), 0, map[string]uint64{failure.ArtifactNotFound: 1})
	if is, _ := sources.Checks(none); !is.LastSuccess.IsZero() {
		t.Errorf("%+v: it never had success", is)
	}
	other := demo
	other.Chart = *demo.Chart.DeepCopy()
	other.Chart.Version, other.Chart.Helm.Digest = "~1", "sha256:"+strings.Repeat("a", 64)
	expectChecks(t, sources, other, begun, len(archive), map[string]uint64{ResultSuccess: 2})

	host := strings.TrimPrefix(server.URL, "http://")
	if got := testutil.ToFloat64(requests.WithLabelValues("helm", host, ResultSuccess)); got != 2 {
		t.Errorf("%v requests with success, want 2", got)
	}
	if got := testutil.ToFloat64(requests.WithLabelValues("helm", host, failure.ArtifactNotFound)); got != 0 {
		t.Errorf("%v requests without: the index was at hand", got)
	}
}

// Without credentials that can be used nobody is asked.
func TestWhatIsNotSentIsNoRequest(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "ca.crt"), "no certificate")
	sources, clock := remoteSources(t, Options{CredentialsDir: dir})
	hosts = labels{known: map[string]bool{}}
	ref := inRegistry("oci://127.0.0.1:9/charts/demo", "1.0.0")
	_, err := sources.Resolve(t.Context(), ref)
	expectReason(t, err, failure.SourceUnauthorized, "")
	for _, result := range []string{ResultSuccess, failure.SourceUnauthorized, failure.SourceUnavailable} {
		if got := testutil.ToFloat64(requests.WithLabelValues("oci", "127.0.0.1:9", result)); got != 0 {
			t.Errorf("%v requests with result %s", got, result)
		}
	}
	if got := testutil.ToFloat64(lastRequest.WithLabelValues("oci", "127.0.0.1:9")); got != 0 {
		t.Errorf("the last one was at %v", got)
	}
	expectChecks(t, sources, ref, clock.Now(), 0, map[string]uint64{failure.SourceUnauthorized: 1})
}

func TestChecksOfWhatIsAtHand(t *testing.T) {
	server := startCluster(t)
	root := t.TempDir()
	write(t, filepath.Join(root, "demo", "Chart.yaml"), "apiVersion: v2\nname: demo\nversion: 1.0.0\n")
	sources, clock := remoteSources(t, Options{ArtifactRoot: root, Client: server.counted})
	archive := chartVersion(t, "1.0.0")
	server.create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "charts"}, BinaryData: map[string][]byte{"chart.tgz": archive}})
	server.create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "charts"}, Data: map[string][]byte{"chart.tgz": archive}})

	for kind, ref := range map[string]reference.Reference{"path": atPath("demo"), "configmap": inConfigMap("team-a", "charts", ""), "secret": inSecret("team-a", "charts", "")} {
		before := testutil.ToFloat64(requests.WithLabelValues(kind, "", ResultSuccess))
		expectFetched(t, sources, ref)
		if got := testutil.ToFloat64(requests.WithLabelValues(kind, "", ResultSuccess)) - before; got != 2 {
			t.Errorf("%v looks at %s, want 2: at the digest, and at the content", got, kind)
		}
		size := len(archive)
		if kind == "path" {
			is, _ := sources.Checks(ref)
			size = int(is.Bytes)
		}
		expectChecks(t, sources, ref, clock.Now(), size, map[string]uint64{ResultSuccess: 2})
	}
	lost := atPath("lost")
	_, err := sources.Resolve(t.Context(), lost)
	expectReason(t, err, failure.ArtifactNotFound, "")
	expectChecks(t, sources, lost, clock.Now(), 0, map[string]uint64{failure.ArtifactNotFound: 1})

	inBundle := atPath("cni")
	inBundle.Bundle = &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{ConfigMap: &addonsv1.ArtifactReference{Name: "bundle"}}}
	_, err = sources.Resolve(t.Context(), inBundle)
	expectReason(t, err, failure.ArtifactNotFound, "")
	expectChecks(t, sources, inBundle, clock.Now(), 0, map[string]uint64{failure.ArtifactNotFound: 1})
}
