// SPDX-License-Identifier: Apache-2.0

package source

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/credentials"
	"github.com/cluster-chandler/chandler/internal/source/layout"
	"github.com/cluster-chandler/chandler/test/targz"
)

const manifestType = "application/vnd.oci.image.manifest.v1+json"

// manifestOf is a manifest with these layers, each as media type and digest.
func manifestOf(layers ...[2]string) string {
	parts := make([]string, 0, len(layers))
	for _, layer := range layers {
		parts = append(parts, fmt.Sprintf(`{"mediaType": %q, "digest": %q, "size": 1}`, layer[0], layer[1]))
	}
	return `{"schemaVersion": 2, "mediaType": "` + manifestType + `", "layers": [` + strings.Join(parts, ", ") + `]}`
}

// serve answers as a registry, with the digest that the content has.
func serve(w http.ResponseWriter, kind, data string) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Docker-Content-Digest", fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(data))))
	w.Header().Set("Content-Length", fmt.Sprint(len(data)))
	_, _ = io.WriteString(w, data)
}

func TestHostileRegistries(t *testing.T) {
	archive := targz.Chart(t)
	digest := artifact.Content{Archive: archive}.Digest()
	right := manifestOf([2]string{layout.ChartLayer, digest})
	manifest := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { serve(w, manifestType, text) }
	}
	tests := map[string]struct {
		manifest, blob http.HandlerFunc
		reason, text   string
	}{
		"an image":         {manifest: manifest(manifestOf([2]string{"application/vnd.oci.image.layer.v1.tar+gzip", digest})), reason: failure.ArtifactInvalid, text: "it is no Helm chart: there is no layer of type " + layout.ChartLayer + "; push it with `helm push`"},
		"two charts":       {manifest: manifest(manifestOf([2]string{layout.ChartLayer, digest}, [2]string{layout.ChartLayer, digest})), reason: failure.ArtifactInvalid, text: "it has more than one layer with a chart; push it with `helm push`"},
		"another hash":     {manifest: manifest(manifestOf([2]string{layout.ChartLayer, "sha512:" + strings.Repeat("a", 128)})), reason: failure.ArtifactInvalid, text: "its chart has a digest that isn't SHA-256; push it with `helm push`"},
		"a path as digest": {manifest: manifest(manifestOf([2]string{layout.ChartLayer, "../../sentinel"})), reason: failure.ArtifactInvalid, text: "its chart has a digest that isn't SHA-256; push it with `helm push`"},
		"an index": {manifest: manifest(`{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []}`),
			reason: failure.ArtifactInvalid, text: "it is an index of several artefacts; name the chart's own manifest in oci.digest"},
		"no JSON": {manifest: manifest("sentinel"), reason: failure.ArtifactInvalid, text: "its manifest is no JSON; push it again, or correct oci.url"},
		"a large manifest": {manifest: manifest(strings.Repeat(" ", layout.MaxManifest+1)), reason: failure.ArtifactTooLarge,
			text: "the manifest is larger than 1048576 bytes, the most that is accepted; make it smaller"},
		"a manifest with another digest": {manifest: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", manifestType)
			w.Header().Set("Docker-Content-Digest", digest)
			_, _ = io.WriteString(w, right)
		}, reason: failure.DigestMismatch, text: "what HOST sends isn't the content with the digest that it promised; it is asked again"},
		"an error that echoes": {manifest: func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"errors": [{"code": "UNAUTHORIZED", "message": "%s"}]}`, r.Header.Get("Authorization"))
		}, reason: failure.SourceUnauthorized, text: "HOST answers Unauthorized to the provider instance's own credentials; have them corrected in its Secret chandler-credentials, or name another Secret in its secretRef"},
		"headers that contradict": {blob: func(w http.ResponseWriter, _ *http.Request) { serve(w, "application/octet-stream", "sentinel") },
			reason: failure.SourceUnavailable, text: "HOST answers with what can't be used: it may be no registry, have headers that contradict the content, " +
				"or refer to a token service without TLS or at a private address; correct the address, or have the registry mended"},
		"another archive": {blob: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "sentinel") },
			reason: failure.DigestMismatch, text: "what the registry sends isn't the content with the digest that was asked for: it is damaged, or was tampered with; push it again"},
		"a truncated archive": {blob: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(archive)))
			_, _ = w.Write(archive[:10])
		}, reason: failure.SourceUnavailable, text: "HOST broke off its answer; it is asked again"},
		"an archive that is too large": {blob: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(artifact.DefaultArchiveBytes+1))
			_, _ = w.Write(archive)
		}, reason: failure.ArtifactTooLarge, text: "the archive is larger than 10485760 bytes, the most that is accepted; make it smaller"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case strings.Contains(r.URL.Path, "/blobs/"):
					test.blob(w, r)
				case test.manifest != nil:
					test.manifest(w, r)
				default:
					serve(w, manifestType, right)
				}
			}))
			server.Config.ErrorLog = quiet
			server.Start()
			defer server.Close()
			host := strings.TrimPrefix(server.URL, "http://")
			dir := t.TempDir()
			write(t, filepath.Join(dir, credentials.KeyOf(host)+".token"), sentinelToken)
			allowPlain(t, dir, host)
			sources, _ := remoteSources(t, Options{CredentialsDir: dir})
			ref := inRegistry("oci://"+host+"/demo", "1.0.0")
			ref.Chart.OCI.PlainHTTP = ptr.To(true)
			resolved, err := sources.Resolve(t.Context(), ref)
			if test.blob != nil {
				_, err = sources.Fetch(t.Context(), ref, resolved)
			}
			expectError(t, err, test.reason, "chart.oci: oci://"+host+"/demo:1.0.0: "+strings.ReplaceAll(test.text, "HOST", host))
			expectNoSecrets(t, err.Error())
		})
	}
}

// Public registries have a token service, to which the registry refers.
func TestTokenService(t *testing.T) {
	archive := targz.Chart(t)
	digest := artifact.Content{Archive: archive}.Digest()
	var server *httptest.Server
	tokens := 0
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/token":
			if user, password, _ := r.BasicAuth(); user != sentinelUser || password != sentinelPassword || r.URL.Query().Get("scope") != "repository:demo:pull" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			tokens++
			_, _ = io.WriteString(w, `{"token": "`+sentinelToken+`"}`)
		case r.Header.Get("Authorization") != "Bearer "+sentinelToken:
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+server.URL+`/token",service="demo",scope="repository:demo:pull"`)
			w.WriteHeader(http.StatusUnauthorized)
		case strings.Contains(r.URL.Path, "/blobs/"):
			serve(w, "application/octet-stream", string(archive))
		default:
			serve(w, manifestType, manifestOf([2]string{layout.ChartLayer, digest}))
		}
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	dir := t.TempDir()
	config := func(password string) {
		write(t, filepath.Join(dir, "config.json"), `{"auths": {"`+host+`": {"username": "`+sentinelUser+`", "password": "`+password+`"}}}`)
	}
	config("sentinel-wrong")
	allowPlain(t, dir, host)
	sources, clock := remoteSources(t, Options{CredentialsDir: dir})
	ref := inRegistry("oci://"+host+"/demo", "1.0.0")
	ref.Chart.OCI.PlainHTTP = ptr.To(true)
	_, err := sources.Resolve(t.Context(), ref)
	if asError(t, err).Reason != failure.SourceUnauthorized {
		t.Errorf("got %v", err)
	}
	expectNoSecrets(t, err.Error())
	config(sentinelPassword)
	expectFetched(t, sources, ref)
	next := inRegistry("oci://"+host+"/demo", "2.0.0")
	next.Chart.OCI.PlainHTTP = ptr.To(true)
	clock.Step(time.Minute)
	expectResolved(t, sources, next)
	if tokens != 1 {
		t.Errorf("%d tokens were asked for, want one for all requests to the repository", tokens)
	}
}
