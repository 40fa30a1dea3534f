// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/credentials"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/github"
	"github.com/cluster-chandler/chandler/test/must"
)

func TestChartsInReleases(t *testing.T) {
	for name, options := range map[string]github.Options{"digests": {Token: sentinelToken}, "no digests": {Token: sentinelToken, WithoutDigests: true}} {
		t.Run(name, func(t *testing.T) {
			w := startGitHub(t, options)
			one, two, other := chartVersion(t, "1.0.0"), chartVersion(t, "2.0.0"), chartVersion(t, "7.0.0")
			w.Publish(demoRepository, github.Release{Tag: "1.0.0", Name: "2.0.0", Files: []github.File{file("demo-1.0.0.tgz", one), file("demo-1.0.0.tgz.prov", []byte("x")), file("notes.txt", nil)}})
			w.Publish(demoRepository, github.Release{Tag: "2.0.0", Name: "1.0.0", Files: []github.File{file("demo-2.0.0.tgz", two)}})
			w.Publish(demoRepository, github.Release{Tag: "charts/demo/v1.0.0+7", Files: []github.File{file("demo-1.0.0.tgz", one), file("other-1.0.0.tgz", other)}})
			w.Publish(demoRepository, github.Release{Tag: "3.0.0", Draft: true, Files: []github.File{file("demo-3.0.0.tgz", two)}})
			w.publish("4.0.0")
			w.publish("page", file("demo.tgz", []byte("no archive")))
			many := make([]github.File, 0, 20)
			for i := range 20 {
				many = append(many, file(fmt.Sprintf("file-%02d.txt", i), nil))
			}
			w.publish("many", many...)
			sources := w.sources(t, "")
			good := map[string]struct {
				ref  reference.Reference
				want []byte
			}{
				"by its tag":          {w.chart("1.0.0"), one},
				"not by its name":     {w.chart("2.0.0"), two},
				"with a prefix":       {w.chart("1.0.0+7", prefixed("charts/demo/v"), called("demo-*.tgz")), one},
				"another file":        {w.chart("1.0.0+7", prefixed("charts/demo/v"), called("o*-1.0.0.t*z")), other},
				"with a digest":       {w.chart("1.0.0", being(digestOf(one))), one},
				"without its .prov":   {w.chart("1.0.0", called("demo-*")), one},
				"of another version":  {w.chart("charts/demo/v1.0.0+7", called("other-1.0.0.tgz"), being(digestOf(other))), other},
				"by the API's own at": {w.chart("1.0.0", func(at *addonsv1.GitHubSource) { at.APIURL = w.API() + "/" }), one},
			}
			for name, tc := range good {
				if got := expectFetched(t, sources, tc.ref); got.Digest != digestOf(tc.want) {
					t.Errorf("%s: it is another one", name)
				}
			}
			for name, tc := range map[string]struct {
				ref    reference.Reference
				reason string
			}{
				"no such tag":        {w.chart("9.9.9"), failure.ArtifactNotFound},
				"a draft":            {w.chart("3.0.0"), failure.ArtifactNotFound},
				"no files":           {w.chart("4.0.0"), failure.ArtifactNotFound},
				"two archives":       {w.chart("1.0.0+7", prefixed("charts/demo/v")), failure.ArtifactInvalid},
				"no archive of many": {w.chart("many"), failure.ArtifactNotFound},
				"no such file":       {w.manifests("1.0.0", called("none.yaml")), failure.ArtifactNotFound},
				"no archive":         {w.chart("page"), failure.ArtifactInvalid},
				"another digest":     {w.chart("1.0.0", being(digestOf(two))), failure.DigestMismatch},
			} {
				t.Run(name, func(t *testing.T) { expectRefused(t, get(t, sources, tc.ref), tc.reason) })
			}
			if got := w.Leaked(); len(got) > 0 {
				t.Errorf("the storage host was shown %q", got)
			}
		})
	}
}

// One release takes one request, and one for its file; what was found is shared.
func TestRequestsForARelease(t *testing.T) {
	w := startGitHub(t, github.Options{Token: sentinelToken})
	w.publish("1.0.0", file("demo-1.0.0.tgz", chartVersion(t, "1.0.0")))
	sources := w.sources(t, t.TempDir())
	for range 5 {
		expectFetched(t, sources, w.chart("1.0.0"))
	}
	want := []string{
		"GET /api/v3/repos/demo/charts/releases/tags/1.0.0 200",
		"GET /api/v3/repos/demo/charts/releases/assets/2 302", "GET storage/demo/charts/2 200",
	}
	must.Equal(t, want, w.Requests(), "requests")
	w.clock.Step(time.Hour)
	expectResolved(t, sources, w.chart("1.0.0", called("demo-*.tgz"))) // the same archive, asked for by another name
	if got, want := w.Requests(), []string{"GET /api/v3/repos/demo/charts/releases/tags/1.0.0 304"}; !slices.Equal(got, want) {
		t.Errorf("requests %q, want %q", got, want)
	}
}

func TestReplacedFiles(t *testing.T) {
	w := startGitHub(t, github.Options{Token: sentinelToken})
	old := chartVersion(t, "1.0.0")
	w.publish("1.0.0", file("demo-1.0.0.tgz", old))
	sources := w.sources(t, "")
	digest := expectResolved(t, sources, w.chart("1.0.0"))
	w.publish("1.0.0", file("demo-1.0.0.tgz", chartVersion(t, "1.0.1")))
	_, err := sources.Fetch(t.Context(), w.chart("1.0.0"), digest)
	expectRefused(t, err, failure.ArtifactNotFound)
	w.clock.Step(retry.Refused.Longest * 2)
	_, err = sources.Fetch(t.Context(), w.chart("1.0.0"), digest)
	expectRefused(t, err, failure.ArtifactChanged)
}

func TestFollowReleases(t *testing.T) {
	w := startGitHub(t, github.Options{Token: sentinelToken})
	one := chartVersion(t, "1.0.0")
	w.publish("demo-1.0.0", file("demo-1.0.0.tgz", one)) // the oldest is on the last page
	for i := range 250 {
		w.publish(fmt.Sprintf("other-2.0.%d", i))
	}
	w.Publish(demoRepository, github.Release{Tag: "demo-1.9.0", Draft: true})
	sources := w.sources(t, t.TempDir())
	ref := w.chart("~1", prefixed("demo-"))
	expectNewest(t, sources, ref, w.clock.Now(), "1.0.0")
	page := "GET /api/v3/repos/demo/charts/releases?page="
	if got, want := w.Requests(), []string{page + "1 200", page + "2 200", page + "3 200"}; !slices.Equal(got, want) {
		t.Errorf("requests %q, want %q", got, want)
	}
	w.clock.Step(time.Minute)
	expectNewest(t, sources, w.chart("~2", prefixed("other-")), w.clock.Now(), "2.0.249") // the same list
	if got, want := w.Requests(), []string{page + "1 304", page + "2 304", page + "3 304"}; !slices.Equal(got, want) {
		t.Errorf("requests %q, want %q", got, want)
	}
	w.LimitRate(1, w.clock.Now().Add(time.Hour))
	for range 3 {
		w.clock.Step(time.Minute)
		expectNewest(t, sources, ref, w.clock.Now(), "1.0.0")
		if got, want := w.Requests(), []string{page + "1 304", page + "2 304", page + "3 304"}; !slices.Equal(got, want) {
			t.Errorf("requests %q, want %q", got, want)
		}
	}
	w.LimitRate(100, w.clock.Now().Add(time.Hour))
	w.publish("demo-1.0.1", file("demo-1.0.1.tgz", chartVersion(t, "1.0.1")))
	w.clock.Step(time.Minute)
	expectNewest(t, sources, ref, w.clock.Now(), "1.0.1")
	must.Equal(t, digestOf(one), expectPinned(t, sources, ref, "1.0.0"), "it is pinned by")
	_, err := newest(t, sources, w.chart("~1", prefixed("none-")), w.clock.Now())
	expectRefused(t, err, failure.ArtifactNotFound)
}

func TestRateLimitOfReleases(t *testing.T) {
	for name, limit := range map[string]struct {
		set  func(w *githubWorld)
		wait time.Duration
	}{
		"used up":               {func(w *githubWorld) { w.LimitRate(0, w.clock.Now().Add(10*time.Minute)) }, 10 * time.Minute},
		"too fast, with a time": {func(w *githubWorld) { w.LimitSecondary(w.clock.Now().Add(2*time.Minute), true) }, 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			w := startGitHub(t, github.Options{Token: sentinelToken})
			w.publish("1.0.0", file("demo-1.0.0.tgz", chartVersion(t, "1.0.0")))
			w.publish("2.0.0", file("demo-2.0.0.tgz", chartVersion(t, "2.0.0")))
			sources := w.sources(t, "")
			limit.set(w)
			first := asError(t, get(t, sources, w.chart("1.0.0")))
			if first.Reason != failure.SourceUnavailable || first.RetryAfter < limit.wait || first.RetryAfter > limit.wait+2*time.Second {
				t.Errorf("%s after %s", first, first.RetryAfter)
			}
			w.Requests()
			w.clock.Step(limit.wait / 2)
			again := asError(t, get(t, sources, w.chart("1.0.0"))) // nobody asks
			if again.RetryAfter < limit.wait/2 || again.Reason != failure.SourceUnavailable {
				t.Errorf("%s after %s", again, again.RetryAfter)
			}
			if got := w.Requests(); len(got) > 0 {
				t.Errorf("requests %q", got)
			}
			w.clock.Step(again.RetryAfter)
			for _, version := range []string{"1.0.0", "2.0.0"} {
				expectRefused(t, get(t, sources, w.chart(version)), "")
			}
		})
	}
}

func TestCredentialsForReleases(t *testing.T) {
	w := startGitHub(t, github.Options{Token: sentinelToken})
	w.publish("1.0.0", file("demo-1.0.0.tgz", chartVersion(t, "1.0.0")))
	w.giveToken(t, "sentinel-other")
	sources := w.sources(t, "")
	err := get(t, sources, w.chart("1.0.0"))
	expectRefused(t, err, failure.SourceUnauthorized)
	expectNoSecrets(t, err.Error())
	must.Succeed(t, os.Remove(filepath.Join(w.dir, credentials.KeyOf(w.Host)+".token")))
	expectRefused(t, get(t, sources, w.chart("1.0.0")), failure.ArtifactNotFound)
	w.giveToken(t, sentinelToken)
	if err := get(t, sources, w.chart("1.0.0")); err != nil {
		t.Error(err)
	}
	w.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
		http.Error(w, "sentinel", http.StatusForbidden)
		return true
	})
	err = get(t, sources, w.chart("2.0.0"))
	expectRefused(t, err, failure.SourceUnauthorized)
	expectNoSecrets(t, err.Error())
}
