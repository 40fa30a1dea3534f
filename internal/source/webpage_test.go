// SPDX-License-Identifier: Apache-2.0

package source

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/credentials"
	"github.com/cluster-chandler/chandler/internal/source/layout"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/targz"
)

// fromGitHub refers to a chart of a release at a host like GitHub.
func fromGitHub(host string) reference.Reference {
	return reference.Reference{Namespace: "team-a", Chart: addonsv1.ChartSource{Version: "1.0.0", GitHub: &addonsv1.GitHubSource{URL: "http://" + host + "/team/charts"}}}
}

// TestWebPageInPlaceOfAnAnswer has what answers with pages for people, and then the
// source is there again: soon, since nothing is wrong with it.
func TestWebPageInPlaceOfAnAnswer(t *testing.T) {
	archive := targz.Chart(t)
	digest := artifact.Content{Archive: archive}.Digest()
	release := `{"id": 1, "tag_name": "1.0.0", "assets": [{"id": 1, "name": "demo-1.0.0.tgz", "size": 10, "state": "uploaded", "digest": "` + digest + `"}]}`
	kinds := map[string]struct {
		ref    func(host string) reference.Reference
		answer http.HandlerFunc
	}{
		"oci": {func(host string) reference.Reference { return inRegistry("oci://"+host+"/demo", "1.0.0") }, func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/blobs/") {
				serve(w, "application/octet-stream", string(archive))
				return
			}
			serve(w, manifestType, manifestOf([2]string{layout.ChartLayer, digest}))
		}},
		"oci, by digest": {func(host string) reference.Reference {
			ref := inRegistry("oci://"+host+"/demo", "")
			ref.Chart.OCI.Digest = artifact.Content{Archive: []byte(manifestOf([2]string{layout.ChartLayer, digest}))}.Digest()
			return ref
		}, func(w http.ResponseWriter, _ *http.Request) {
			serve(w, manifestType, manifestOf([2]string{layout.ChartLayer, digest}))
		}},
		"helm": {func(host string) reference.Reference { return inRepository("http://"+host, "1.0.0") }, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "entries:\n  demo:\n  - version: 1.0.0\n    digest: "+strings.TrimPrefix(digest, "sha256:")+"\n    urls: [demo.tgz]\n")
		}},
		"github": {fromGitHub, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, release) }},
	}
	pages := map[string]struct{ kind, text string }{
		"a page":                   {"text/html; charset=utf-8", "<!DOCTYPE html><p>sentinel"},
		"a page with blanks":       {"text/html", "\ufeff\n\n  <html>sentinel"},
		"one that says it is JSON": {"application/json", "<html>sentinel"},
		"a bare text":              {"text/html", "sentinel is under maintenance"},
	}
	for kind, source := range kinds {
		for name, page := range pages {
			t.Run(kind+"/"+name, func(t *testing.T) {
				down := true
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if !down {
						source.answer(w, r)
						return
					}
					w.Header().Set("Content-Type", page.kind)
					_, _ = io.WriteString(w, page.text)
				}))
				defer server.Close()
				host := strings.TrimPrefix(server.URL, "http://")
				sources, clock := remoteSources(t, Options{})
				ref := source.ref(host)
				plainly(&ref)
				for range 8 {
					_, err := sources.Resolve(t.Context(), ref)
					known := asError(t, err)
					if known.Reason != failure.SourceUnavailable || !strings.Contains(err.Error(), host+" answers with a web page") {
						t.Fatalf("got %s: %s", known.Reason, err)
					}
					if !known.Wait || known.RetryAfter <= 0 || known.RetryAfter > failure.MaxUnavailable*5/4 {
						t.Errorf("wait %v, retry after %s", known.Wait, known.RetryAfter)
					}
					expectNoSecrets(t, err.Error())
					clock.Step(known.RetryAfter)
				}
				down = false
				clock.Step(failure.MaxUnavailable * 2)
				if got := expectResolved(t, sources, ref); got != digest {
					t.Errorf("digest %s", got)
				}
			})
		}
	}
}

func TestReleasesThatRedirectForever(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Path+"?again="+r.URL.RawQuery, http.StatusFound)
	}))
	defer server.Close()
	sources, _ := remoteSources(t, Options{})
	ref := reference.Reference{Namespace: "team-a", Chart: addonsv1.ChartSource{Version: "1.0.0", GitHub: &addonsv1.GitHubSource{URL: server.URL + "/team/charts"}}}
	plainly(&ref)
	_, err := sources.Resolve(t.Context(), ref)
	if known := asError(t, err); known.Reason != failure.SourceUnavailable || !strings.Contains(err.Error(), "redirects more than 5 times") {
		t.Errorf("got %s: %s", known.Reason, err)
	}
}

// plainly lets the reference's host be asked without TLS.
func plainly(ref *reference.Reference) {
	switch {
	case ref.Chart.OCI != nil:
		ref.Chart.OCI.PlainHTTP = ptr.To(true)
	case ref.Chart.Helm != nil:
		ref.Chart.Helm.PlainHTTP = ptr.To(true)
	case ref.Chart.GitHub != nil:
		ref.Chart.GitHub.PlainHTTP = ptr.To(true)
	}
}

func TestWebPageInPlaceOfABlob(t *testing.T) {
	digest := artifact.Content{Archive: targz.Chart(t)}.Digest()
	sources, ref, host := registryBy(t, nil, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/blobs/") {
			_, _ = io.WriteString(w, "<html>sentinel")
			return
		}
		serve(w, manifestType, manifestOf([2]string{layout.ChartLayer, digest}))
	})
	_, err := sources.Fetch(t.Context(), ref, expectResolved(t, sources, ref))
	if known := asError(t, err); known.Reason != failure.SourceUnavailable || !strings.Contains(err.Error(), host+" answers with a web page") {
		t.Errorf("got %s: %s", known.Reason, err)
	}
}

// TestWhatCallsItselfAPage has sound answers that are called text/html.
func TestWhatCallsItselfAPage(t *testing.T) {
	archive := targz.Chart(t)
	digest := artifact.Content{Archive: archive}.Digest()
	sources, ref, _ := registryBy(t, nil, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/blobs/") {
			serve(w, "text/html", string(archive))
			return
		}
		serve(w, "text/html", manifestOf([2]string{layout.ChartLayer, digest}))
	})
	expectFetched(t, sources, ref)
	repository, _, ref, _ := servedBy(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if strings.HasSuffix(r.URL.Path, "index.yaml") {
			_, _ = io.WriteString(w, "entries:\n  demo:\n  - version: 1.0.0\n    urls: [demo.tgz]\n")
			return
		}
		_, _ = w.Write(archive)
	})
	expectFetched(t, repository, ref)
}

// registryBy is a chart in a registry that the handler is. The instance's own
// credentials for it have these keys.
func registryBy(t testing.TB, keys map[string]string, handler http.HandlerFunc) (*Sources, reference.Reference, string) {
	t.Helper()
	server := serving(t, handler)
	host := strings.TrimPrefix(server.URL, "http://")
	dir := t.TempDir()
	for key, value := range keys {
		write(t, filepath.Join(dir, credentials.KeyOf(host)+"."+key), value)
	}
	allowPlain(t, dir, host)
	sources, _ := remoteSources(t, Options{CredentialsDir: dir})
	ref := inRegistry("oci://"+host+"/demo", "1.0.0")
	plainly(&ref)
	return sources, ref, host
}
