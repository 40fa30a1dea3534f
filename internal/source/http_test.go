// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/test/must"
)

func TestArchiveAtAnAddress(t *testing.T) {
	archive := chartVersion(t, "1.0.0")
	digest := digestOf(archive)
	var requests atomic.Int32
	server, dir := serveAt(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if r.Header.Get("Authorization") != "Bearer "+sentinelToken || r.URL.RawQuery != "key=sentinel" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=latin1") // which nobody asked
		_, _ = w.Write(archive)
	})
	sources, _ := remoteSources(t, source.Options{CredentialsDir: dir})
	ref := atAddress(server.URL+"/private/demo-1.0.0.tgz?key=sentinel", digest)
	got := expectFetched(t, sources, ref)
	if got.Digest != digest || len(got.Files) != 1 {
		t.Errorf("got %s with %q", got.Digest, namesOf(got))
	}
	expectFetched(t, sources, ref)
	must.Equal(t, 1, requests.Load(), "requests")
	version := sources.Version(t.Context(), ref)
	expectNoSecrets(t, version)
	if !strings.Contains(version, digest) {
		t.Errorf("its version is %s", version)
	}

	other := atAddress(server.URL+"/private/demo-1.0.0.tgz?key=sentinel-wrong", digest)
	expectRefused(t, get(t, sources, other), failure.SourceUnauthorized)
}

// Users who may write an AddonStack may name any path of a host. The instance's own
// credentials go only to the paths that they are for. Nobody reads what is there by its digest.
func TestOwnCredentialsForAddressesAreForPaths(t *testing.T) {
	document := "apiVersion: v1\nkind: PodList\nitems: []\n"
	var seen atomic.Value
	server, dir := serveAt(t, func(w http.ResponseWriter, r *http.Request) {
		seen.Store(r.Header.Get("Authorization"))
		_, _ = io.WriteString(w, document)
	})
	for path, sent := range map[string]bool{
		"/private/x.yaml": true, "/private": true, "/private/a/b?c=d": true,
		"/api/v1/pods": false, "/": false, "/privateer/x": false,
	} {
		seen.Store("")
		sources, _ := remoteSources(t, source.Options{CredentialsDir: dir})
		err := get(t, sources, as(artifact.KindManifests, atAddress(server.URL+path, digestOf("a guess"))))
		expectRefused(t, err, failure.DigestMismatch)
		must.Equal(t, sent, seen.Load() == "Bearer "+sentinelToken, path)
		if strings.Contains(err.Error(), digestOf(document)) {
			t.Errorf("%s: the error tells the digest: %v", path, err)
		}
	}
	for _, path := range []string{"/private/../api/v1/pods", "/private/%2e%2e/api/v1/pods", "/private/..%2fapi"} {
		seen.Store("nothing")
		sources, _ := remoteSources(t, source.Options{CredentialsDir: dir})
		err := get(t, sources, atAddress(server.URL+path, digestOf(document)))
		expectRefused(t, err, failure.ArtifactRefused)
		must.Equal[any](t, "nothing", seen.Load(), path)
	}
}
