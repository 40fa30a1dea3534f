// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/credentials"
	"github.com/cluster-chandler/chandler/internal/source/dependency"
	"github.com/cluster-chandler/chandler/internal/source/flight"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/targz"
)

// atAddress refers to an archive at an address of a server without TLS.
func atAddress(url, digest string) reference.Reference {
	return reference.Reference{Namespace: "team-a", Chart: addonsv1.ChartSource{HTTP: &addonsv1.HTTPSource{URL: url, Digest: digest, PlainHTTP: ptr.To(true)}}}
}

// serveAt starts a server, and makes a directory of credentials for it, also for what is
// below /private at any address.
func serveAt(t testing.TB, handler http.HandlerFunc) (server *httptest.Server, credentialsDir string) {
	t.Helper()
	server = serving(t, handler)
	credentialsDir = t.TempDir()
	host := strings.TrimPrefix(server.URL, "http://")
	write(t, filepath.Join(credentialsDir, credentials.KeyOf(host)+".token"), sentinelToken)
	write(t, filepath.Join(credentialsDir, "config.json"), `{"auths": {"`+host+`/private": {"registrytoken": "`+sentinelToken+`"}}}`)
	allowPlain(t, credentialsDir, host)
	return server, credentialsDir
}

func TestArchiveAtAnAddress(t *testing.T) {
	archive := chartVersion(t, "1.0.0")
	digest := artifact.Content{Archive: archive}.Digest()
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
	sources, _ := remoteSources(t, Options{CredentialsDir: dir})
	ref := atAddress(server.URL+"/private/demo-1.0.0.tgz?key=sentinel", digest)
	got := expectFetched(t, sources, ref)
	if _, version := dependency.ChartOf(got.Files); got.Digest != digest || version != "1.0.0" {
		t.Errorf("got %s in version %s", got.Digest, version)
	}
	expectFetched(t, sources, ref)
	if got := requests.Load(); got != 1 {
		t.Errorf("%d requests, want 1", got)
	}
	version := sources.Version(t.Context(), ref)
	expectNoSecrets(t, version)
	if !strings.Contains(version, digest) {
		t.Errorf("its version is %s", version)
	}

	other := ref
	other.Chart.HTTP = ptr.To(*ref.Chart.HTTP)
	other.Chart.HTTP.URL = server.URL + "/private/demo-1.0.0.tgz?key=sentinel-wrong"
	_, err := sources.Fetch(t.Context(), other, digest)
	expectError(t, err, failure.SourceUnauthorized, "chart.http: "+server.URL+"/private/demo-1.0.0.tgz@"+digest+": "+strings.TrimPrefix(server.URL, "http://")+
		" answers 401 Unauthorized to the provider instance's own credentials; have them corrected in its Secret chandler-credentials, or name another Secret in its secretRef")
	expectNoSecrets(t, err.Error())
}

func TestHostileAddresses(t *testing.T) {
	archive := targz.Chart(t)
	digest := artifact.Content{Archive: archive}.Digest()
	tests := map[string]struct {
		handler      http.HandlerFunc
		reason, text string
	}{
		"endless redirect": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path+"x", http.StatusFound) },
			failure.SourceUnavailable, "HOST redirects more than 5 times; correct the address"},
		"redirect to a metadata server": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/sentinel", http.StatusFound)
		}, failure.ArtifactRefused, "169.254.169.254 is a loopback, link-local or metadata address, which no object may name; correct the address"},
		"nothing": {http.NotFound, failure.ArtifactNotFound,
			"HOST has nothing at this address, or doesn't show it to these credentials; put the archive there, or correct http.url"},
		"another archive": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(chartVersion(t, "6.6.6")) },
			failure.DigestMismatch, "the archive isn't the one of http.digest; compare that with what sha256sum prints, and correct http.digest or url"},
		"a web page that calls itself an archive": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/gzip")
			_, _ = io.WriteString(w, "<!DOCTYPE html>sentinel")
		}, failure.SourceUnavailable, "HOST answers with a web page: something between may want a login, as a proxy does, or it is under maintenance, or the url is that of a page; it is asked again"},
		"a truncated archive": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(archive)))
			_, _ = w.Write(archive[:len(archive)/2])
		}, failure.SourceUnavailable, "HOST broke off its answer; it is asked again"},
		"a large archive": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(artifact.DefaultArchiveBytes+1))
			_, _ = w.Write(archive)
		}, failure.ArtifactTooLarge, "the archive is larger than 10485760 bytes, the most that is accepted; make it smaller"},
		"an archive without an end": {func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		}, failure.ArtifactTooLarge, "the archive is larger than 10485760 bytes, the most that is accepted; make it smaller"},
		"too many requests": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "600")
			http.Error(w, "sentinel", http.StatusTooManyRequests)
		}, failure.SourceUnavailable, "HOST asks to be left alone for a while (429 Too Many Requests, or Retry-After); it is asked again then"},
		"an error": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "sentinel", http.StatusInternalServerError)
		},
			failure.SourceUnavailable, "HOST answers 500 Internal Server Error; it is asked again"},
		"forbidden": {func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, r.Header.Get("Authorization"), http.StatusForbidden)
		}, failure.SourceUnauthorized, "HOST answers 403 Forbidden to the provider instance's own credentials; " +
			"have them corrected in its Secret chandler-credentials, or name another Secret in its secretRef"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int32
			server, dir := serveAt(t, func(w http.ResponseWriter, r *http.Request) { requests.Add(1); test.handler(w, r) })
			sources, clock := remoteSources(t, Options{CredentialsDir: dir})
			ref := atAddress(server.URL+"/private/demo.tgz?sentinel", digest)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			start := time.Now()
			_, err := sources.Fetch(t.Context(), ref, expectResolved(t, sources, ref))
			runtime.ReadMemStats(&after)
			expectError(t, err, test.reason, "chart.http: "+server.URL+"/private/demo.tgz@"+digest+": "+
				strings.ReplaceAll(test.text, "HOST", strings.TrimPrefix(server.URL, "http://")))
			expectNoSecrets(t, err.Error())
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("it took %s", took)
			}
			if took := int64(after.Sys) - int64(before.Sys); took > 64<<20 {
				t.Errorf("it took %d MiB", took>>20)
			}
			asked := requests.Load()
			_, err = sources.Fetch(t.Context(), ref, digest)
			known := asError(t, err)
			if requests.Load() != asked || known.RetryAfter <= 0 {
				t.Errorf("it was asked again at once; retry after %s", known.RetryAfter)
			}
			clock.Step(known.RetryAfter)
			if _, err = sources.Fetch(t.Context(), ref, digest); err == nil || requests.Load() == asked {
				t.Errorf("%v: it wasn't asked again when it was time", err)
			}
		})
	}
}

// One byte each 10 ms, for ever: whoever waits is told, and it ends.
func TestSlowAddress(t *testing.T) {
	asked := make(chan struct{}, 10)
	server, dir := serveAt(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, "\x1f")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	sources, clock := remoteSources(t, Options{CredentialsDir: dir})
	sources.remote.timeout = 500 * time.Millisecond
	digest := artifact.Content{Archive: targz.Chart(t)}.Digest()
	ref := atAddress(server.URL+"/demo.tgz", digest)
	waiting := make(chan error)
	fetch := func() { _, err := sources.Fetch(t.Context(), ref, digest); waiting <- err }
	go fetch()
	<-asked
	for !clock.HasWaiters() {
		runtime.Gosched()
	}
	clock.Step(flight.Patience)
	expectError(t, <-waiting, failure.ArtifactPending, "chart.http: "+server.URL+"/demo.tgz@"+digest+": the source is slow; what it has is still being read")
	go fetch()
	expectError(t, <-waiting, failure.SourceUnavailable, "chart.http: "+server.URL+"/demo.tgz@"+digest+": "+strings.TrimPrefix(server.URL, "http://")+" doesn't answer in time; it is asked again")
	if len(asked) != 0 {
		t.Error("it was asked twice")
	}
}

// Who may write an AddonStack may name any path of a host: the instance's own credentials
// go to those only that they are for, and what is there can't be read by its digest.
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
		sources, _ := remoteSources(t, Options{CredentialsDir: dir})
		err := get(t, sources, manifestsLike(atAddress(server.URL+path, digestOfArchive([]byte("a guess")))))
		expectRefused(t, err, failure.DigestMismatch, "isn't the one of http.digest")
		if got := seen.Load() == "Bearer "+sentinelToken; got != sent {
			t.Errorf("%s: credentials are sent: %t", path, got)
		}
		if strings.Contains(err.Error(), digestOfArchive([]byte(document))) {
			t.Errorf("%s: the error tells the digest: %v", path, err)
		}
	}
	for _, path := range []string{"/private/../api/v1/pods", "/private/%2e%2e/api/v1/pods", "/private/..%2fapi"} {
		seen.Store("nothing")
		sources, _ := remoteSources(t, Options{CredentialsDir: dir})
		err := get(t, sources, atAddress(server.URL+path, digestOfArchive([]byte(document))))
		expectRefused(t, err, failure.ArtifactRefused, "a part that is")
		if seen.Load() != "nothing" {
			t.Errorf("%s is asked for", path)
		}
	}
}
