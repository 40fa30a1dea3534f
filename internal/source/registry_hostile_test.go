// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source/layout"
	"github.com/cluster-chandler/chandler/test/targz"
)

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
