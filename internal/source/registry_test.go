// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/layout"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/registry"
	"github.com/cluster-chandler/chandler/test/targz"
)

func TestChartFromARegistry(t *testing.T) {
	users := map[string]string{sentinelUser: sentinelPassword}
	server := registry.Start(t, registry.Options{Users: users})
	archive := chartVersion(t, "1.0.0+build.7")
	manifest := server.Push(t, archive, "charts/demo", "1.0.0_build.7")
	dir := t.TempDir()
	ownCredentialsFor(t, dir, server, sentinelUser, sentinelPassword)
	memory := budget.New(budget.Limits{})
	sources, _ := remoteSources(t, source.Options{CredentialsDir: dir, Memory: memory})
	server.Requests(t)

	ref := inRegistry(server.URL("charts/demo"), "1.0.0+build.7")
	fetched := expectFetched(t, sources, ref)
	must.Equal(t, digestOf(archive), fetched.Digest, "digest")
	must.Equal(t, 0, memory.Usage().Claimed, "claimed once it is fetched")
	got := server.Requests(t)
	want := []string{ // the first is refused, and says how to authenticate
		"GET /v2/charts/demo/manifests/1.0.0_build.7 401",
		"GET /v2/charts/demo/manifests/1.0.0_build.7 200",
		"GET /v2/charts/demo/blobs/" + fetched.Digest + " 200",
	}
	must.Equal(t, want, got, "requests")

	t.Run("again, it costs no request", func(t *testing.T) {
		expectFetched(t, sources, ref)
		must.Len(t, 0, server.Requests(t), "requests")
	})
	t.Run("after a restart, known by its digest, it costs one", func(t *testing.T) {
		restarted, _ := remoteSources(t, source.Options{CredentialsDir: dir})
		if _, err := restarted.Fetch(t.Context(), ref, fetched.Digest); err != nil {
			t.Fatal(err)
		}
		if got := server.Requests(t); len(got) != 2 || !strings.HasSuffix(got[1], fetched.Digest+" 200") {
			t.Errorf("requests %q", got)
		}
		if sources.Version(t.Context(), ref) != restarted.Version(t.Context(), ref) {
			t.Error("the version differs after a restart")
		}
	})
	t.Run("by the manifest's digest", func(t *testing.T) {
		pinned := inRegistry(server.URL("charts/demo"), "")
		pinned.Chart.OCI.Digest = manifest
		if got := expectFetched(t, sources, pinned); got.Digest != fetched.Digest {
			t.Errorf("digest %s", got.Digest)
		}
		pinned.Chart.Version = "v1.0.0+build.7"
		expectFetched(t, sources, pinned)
		pinned.Chart.Version = "1.0.1"
		_, err := sources.Fetch(t.Context(), pinned, fetched.Digest)
		expectRefused(t, err, failure.DigestMismatch)
	})
	t.Run("a version that isn't there", func(t *testing.T) {
		_, err := sources.Resolve(t.Context(), inRegistry(server.URL("charts/demo"), "9.9.9"))
		missing := asError(t, err)
		if missing.Reason != failure.ArtifactNotFound || !missing.Wait || missing.RetryAfter <= 0 {
			t.Errorf("got %+v", missing)
		}
	})
}

func TestVersionThatMoved(t *testing.T) {
	server := registry.Start(t, registry.Options{PlainHTTP: true})
	server.Push(t, chartVersion(t, "1.0.0"), "demo", "1.0.0")
	sources, clock := remoteSources(t, source.Options{})
	ref := plainly(inRegistry(server.URL("demo"), "1.0.0"))
	first := expectResolved(t, sources, ref)

	// The tag is moved, and what was there is gone.
	server.Stop()
	_, err := sources.Fetch(t.Context(), ref, first)
	expectRefused(t, err, failure.SourceUnavailable)
	again := registry.Start(t, registry.Options{PlainHTTP: true, Address: server.Host})
	again.Push(t, targz.Of(t, targz.Entry{Name: "demo/Chart.yaml", Data: targz.ChartYAML + "description: another one\n"}), "demo", "1.0.0")
	clock.Step(retry.Unavailable.Longest * 2)

	_, err = sources.Fetch(t.Context(), ref, first)
	expectRefused(t, err, failure.ArtifactChanged)
	if now := expectFetched(t, sources, ref); now.Digest == first {
		t.Error("those who ask again get what is gone")
	}
}

func TestHostileRegistries(t *testing.T) {
	archive := targz.Chart(t)
	digest := digestOf(archive)
	right := manifestOf([2]string{layout.ChartLayer, digest})
	manifest := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { serve(w, manifestType, text) }
	}
	for name, test := range map[string]struct {
		manifest, blob http.HandlerFunc
		reason         string
	}{
		"an image":         {manifest: manifest(manifestOf([2]string{"application/vnd.oci.image.layer.v1.tar+gzip", digest})), reason: failure.ArtifactInvalid},
		"two charts":       {manifest: manifest(manifestOf([2]string{layout.ChartLayer, digest}, [2]string{layout.ChartLayer, digest})), reason: failure.ArtifactInvalid},
		"another hash":     {manifest: manifest(manifestOf([2]string{layout.ChartLayer, "sha512:" + strings.Repeat("a", 128)})), reason: failure.ArtifactInvalid},
		"a path as digest": {manifest: manifest(manifestOf([2]string{layout.ChartLayer, "../../sentinel"})), reason: failure.ArtifactInvalid},
		"an index":         {manifest: manifest(`{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []}`), reason: failure.ArtifactInvalid},
		"no JSON":          {manifest: manifest("sentinel"), reason: failure.ArtifactInvalid},
		"a large manifest": {manifest: manifest(strings.Repeat(" ", layout.MaxManifest+1)), reason: failure.ArtifactTooLarge},
		"a web page": {manifest: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<!DOCTYPE html>sentinel")
		}, reason: failure.ArtifactInvalid},
		"a manifest with another digest": {manifest: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", manifestType)
			w.Header().Set("Docker-Content-Digest", digest)
			_, _ = io.WriteString(w, right)
		}, reason: failure.DigestMismatch},
		"an error that echoes": {manifest: func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"errors": [{"code": "UNAUTHORIZED", "message": "%s"}]}`, r.Header.Get("Authorization"))
		}, reason: failure.SourceUnauthorized},
		"headers that contradict": {blob: func(w http.ResponseWriter, _ *http.Request) { serve(w, "application/octet-stream", "sentinel") }, reason: failure.SourceUnavailable},
		"another archive":         {blob: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "sentinel") }, reason: failure.DigestMismatch},
		"a truncated archive": {blob: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(archive)))
			_, _ = w.Write(archive[:10])
		}, reason: failure.SourceUnavailable},
		"an archive that is too large": {blob: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(10<<20+1))
			_, _ = w.Write(archive)
		}, reason: failure.ArtifactTooLarge},
		"an archive that is called a page": {blob: func(w http.ResponseWriter, _ *http.Request) { serve(w, "text/html", string(archive)) }},
	} {
		t.Run(name, func(t *testing.T) {
			sources, ref, _ := registryBy(t, map[string]string{"token": sentinelToken}, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case strings.Contains(r.URL.Path, "/blobs/"):
					test.blob(w, r)
				case test.manifest != nil:
					test.manifest(w, r)
				default:
					serve(w, manifestType, right)
				}
			})
			resolved, err := sources.Resolve(t.Context(), ref)
			if test.blob != nil {
				_, err = sources.Fetch(t.Context(), ref, resolved)
			}
			expectRefused(t, err, test.reason)
		})
	}
}
