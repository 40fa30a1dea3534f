// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/layout"
	"github.com/cluster-chandler/chandler/internal/source/policy"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/source/webpage"
	"github.com/cluster-chandler/chandler/test/targz"
)

// TestWebPageInPlaceOfAnArchive has a login page for what the source names, and then the
// archive is there again: soon, since nothing is wrong with it.
func TestWebPageInPlaceOfAnArchive(t *testing.T) {
	archive := targz.Chart(t)
	digest := artifact.Content{Archive: archive}.Digest()
	layer := func(name, data string) string {
		return fmt.Sprintf(`{"mediaType": %q, "digest": %q, "size": %d, "annotations": {"org.opencontainers.image.title": %q}}`, "application/octet-stream", digestOfArchive([]byte(data)), len(data), name)
	}
	const file = "addons: {}\n"
	stack := fmt.Sprintf(`{"schemaVersion": 2, "mediaType": %q, "artifactType": %q, "layers": [%s]}`, manifestType, layout.ClusterStack, layer("clusteraddon.yaml", file))
	atGitHub := func(promised string) string {
		return fmt.Sprintf(`{"tag_name": "1.0.0", "assets": [{"id": 1, "name": "demo-1.0.0.tgz", "size": %d, "state": "uploaded", "digest": %q}]}`, len(archive), promised)
	}
	inIndex := func(promised string) string {
		return "entries:\n  demo:\n  - version: 1.0.0\n    digest: " + strings.TrimPrefix(promised, "sha256:") + "\n    urls: [demo.tgz]\n"
	}
	text := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
	}
	manifest := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { serve(w, manifestType, text) }
	}
	for kind, source := range map[string]struct {
		ref     func(host string) reference.Reference
		before  http.HandlerFunc // what leads to the archive
		archive string           // in the path of its address
		data    string
	}{
		"http": {func(host string) reference.Reference {
			ref := atAddress("http://"+host+"/demo.tgz", digest)
			ref.Chart.HTTP.PlainHTTP = ptr.To(true)
			return ref
		}, nil, "demo.tgz", string(archive)},
		"helm":              {func(host string) reference.Reference { return inRepository("http://"+host, "1.0.0") }, text(inIndex(digest)), "demo.tgz", string(archive)},
		"helm, no digest":   {func(host string) reference.Reference { return inRepository("http://"+host, "1.0.0") }, text(inIndex("")), "demo.tgz", string(archive)},
		"github":            {fromGitHub, text(atGitHub(digest)), "/assets/", string(archive)},
		"github, no digest": {fromGitHub, text(atGitHub("")), "/assets/", string(archive)},
		"github, all files": {func(host string) reference.Reference {
			return reference.BundleOf("team-a", &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{Version: "1.0.0", GitHub: fromGitHub(host).Chart.GitHub}})
		}, text(atGitHub(digest)), "/assets/", string(archive)},
		"oci": {func(host string) reference.Reference { return inRegistry("oci://"+host+"/team/blobs/demo", "1.0.0") },
			manifest(manifestOf([2]string{layout.ChartLayer, digest})), "/blobs/sha256:", string(archive)},
		"oci, all files": {func(host string) reference.Reference {
			return reference.BundleOf("team-a", &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{Version: "1.0.0", OCI: &addonsv1.OCISource{URL: "oci://" + host + "/demo"}}})
		}, manifest(stack), "/blobs/sha256:", file},
	} {
		for name, page := range map[string]struct{ kind, text string }{
			"a page":                         {"text/html; charset=utf-8", "<!DOCTYPE html><p>sentinel"},
			"one that says it is an archive": {"application/gzip", "\n<html>sentinel"},
			"a bare text":                    {"text/html", "sentinel is under maintenance"},
		} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				down := true
				login := serving(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { serve(w, page.kind, page.text) }))
				server := serving(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					switch {
					case !strings.Contains(r.URL.Path, source.archive):
						source.before(w, r)
					case down:
						http.Redirect(w, r, login.URL, http.StatusFound)
					default:
						serve(w, "text/html", source.data) // whatever it is called
					}
				}))
				ref := source.ref(strings.TrimPrefix(server.URL, "http://"))
				plainly(&ref)
				sources, clock := remoteSources(t, Options{})
				for range 8 {
					err := get(t, sources, ref)
					expectRefused(t, err, failure.SourceUnavailable, strings.TrimPrefix(login.URL, "http://")+" answers with a web page")
					known := asError(t, err)
					if !known.Wait || known.RetryAfter <= 0 || known.RetryAfter > failure.MaxUnavailable*5/4 {
						t.Errorf("wait %v, retry after %s", known.Wait, known.RetryAfter)
					}
					expectNoSecrets(t, err.Error())
					clock.Step(known.RetryAfter)
				}
				down = false
				clock.Step(failure.MaxUnavailable * 2)
				expectFetched(t, sources, ref)
			})
		}
	}
}

// TestFilesThatLookLikePages has a registry's layer that starts as a page does, and is
// the one that was asked for; and one that is too long for a page.
func TestFilesThatLookLikePages(t *testing.T) {
	for name, file := range map[string]string{"short": "<svg/>", "long": "<svg>" + strings.Repeat(" ", 2*webpage.MaxPage)} {
		t.Run(name, func(t *testing.T) {
			digest := digestOfArchive([]byte(file))
			manifest := fmt.Sprintf(`{"schemaVersion": 2, "mediaType": %q, "artifactType": %q, "layers": [{"mediaType": %q, "digest": %q, "size": %d, "annotations": {"org.opencontainers.image.title": "logo.svg"}}]}`,
				manifestType, layout.ClusterStack, "application/octet-stream", digest, len(file))
			server := serving(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.URL.Path, "/blobs/") {
					serve(w, "text/html", file)
					return
				}
				serve(w, manifestType, manifest)
			}))
			sources, _ := remoteSources(t, Options{})
			ref := reference.BundleOf("team-a", &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{Version: "1.0.0", OCI: &addonsv1.OCISource{URL: "oci://" + strings.TrimPrefix(server.URL, "http://") + "/demo"}}})
			plainly(&ref)
			if got := expectFetched(t, sources, ref); len(got.Files) != 1 || string(got.Files[0].Data) != file {
				t.Errorf("got %d files", len(got.Files))
			}
		})
	}
}

func TestWebPageInPlaceOfAProvenanceFile(t *testing.T) {
	w := startSigned(t)
	archive := targz.Chart(t)
	page := "<html>sentinel"
	server := serving(t, http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "index.yaml"):
			_, _ = io.WriteString(out, "entries:\n  demo:\n  - version: 1.0.0\n    urls: [demo-1.0.0.tgz]\n")
		case strings.HasSuffix(r.URL.Path, policy.ProvenanceSuffix):
			serve(out, "text/html", page) // whatever it is
		default:
			_, _ = out.Write(archive)
		}
	}))
	ref := inRepository(server.URL, "1.0.0")
	plainly(&ref)
	ref.Chart.Verify = byKeyring("pubring.gpg")
	err := get(t, w.sources(t), ref)
	expectRefused(t, err, failure.SourceUnavailable, "answers with a web page")
	expectNoSecrets(t, err.Error())
	page = "sentinel"
	expectRefused(t, get(t, w.sources(t), ref), failure.SignatureInvalid, "it is no provenance file")
	page = string(w.openpgp.Provenance(t, archive, "demo-1.0.0.tgz"))
	if err := get(t, w.sources(t), ref); err != nil {
		t.Error(err)
	}
}
