// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/credentials"
	"github.com/cluster-chandler/chandler/internal/source/layout"
	"github.com/cluster-chandler/chandler/internal/source/place"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/github"
)

// releases of a repository at a server with TLS, and an instance with credentials for it.
type githubWorld struct {
	*github.Server
	clock *clocktesting.FakeClock
	dir   string // of the instance's own credentials
}

const demoRepository = "demo/charts"

func startGitHub(t testing.TB, options github.Options) *githubWorld {
	t.Helper()
	w := &githubWorld{clock: clocktesting.NewFakeClock(time.Now().Truncate(time.Second)), dir: t.TempDir()}
	options.Now = w.clock.Now
	w.Server = github.Start(t, options)
	write(t, filepath.Join(w.dir, "ca.crt"), string(w.CA))
	if options.Token != "" {
		w.giveToken(t, options.Token)
	}
	return w
}

func (w *githubWorld) giveToken(t testing.TB, token string) {
	t.Helper()
	write(t, filepath.Join(w.dir, credentials.KeyOf(w.Host)+".token"), token)
	allowPlain(t, w.dir, w.Host)
}

// sources of its own, that know nothing but what is in the directory of a store.
func (w *githubWorld) sources(t testing.TB, dir string) *Sources {
	t.Helper()
	options := Options{AllowLoopback: true, Clock: w.clock, CredentialsDir: w.dir}
	if dir != "" {
		options.Store = storeAt(dir)
	}
	return newSources(t, options)
}

func (w *githubWorld) chart(version string, change ...func(*addonsv1.GitHubSource)) reference.Reference {
	at := &addonsv1.GitHubSource{URL: w.URL(demoRepository)}
	for _, change := range change {
		change(at)
	}
	return reference.Reference{Namespace: "team-a", Chart: addonsv1.ChartSource{GitHub: at, Version: version}}
}

func (w *githubWorld) bundle(version string) reference.Reference {
	return reference.BundleOf("team-a", &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{
		GitHub: &addonsv1.GitHubSource{URL: w.URL(demoRepository)}, Version: version}})
}

func (w *githubWorld) manifests(version string, change ...func(*addonsv1.GitHubSource)) reference.Reference {
	return reference.ManifestsOf("team-a", &addonsv1.ManifestsSource{ArtifactSource: addonsv1.ArtifactSource{
		GitHub: w.chart(version, change...).Chart.GitHub, Version: version}})
}

func (w *githubWorld) publish(tag string, files ...github.File) {
	w.Publish(demoRepository, github.Release{Tag: tag, Name: "what people see", Files: files})
}

func prefixed(prefix string) func(*addonsv1.GitHubSource) {
	return func(at *addonsv1.GitHubSource) { at.TagPrefix = prefix }
}

func called(asset string) func(*addonsv1.GitHubSource) {
	return func(at *addonsv1.GitHubSource) { at.Asset = asset }
}

func being(digest string) func(*addonsv1.GitHubSource) {
	return func(at *addonsv1.GitHubSource) { at.Digest = digest }
}

func file(name string, data []byte) github.File { return github.File{Name: name, Data: data} }

func digestOfArchive(archive []byte) string { return artifact.Content{Archive: archive}.Digest() }

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
				"with a digest":       {w.chart("1.0.0", being(digestOfArchive(one))), one},
				"without its .prov":   {w.chart("1.0.0", called("demo-*")), one},
				"of another version":  {w.chart("charts/demo/v1.0.0+7", called("other-1.0.0.tgz"), being(digestOfArchive(other))), other},
				"by the API's own at": {w.chart("1.0.0", func(at *addonsv1.GitHubSource) { at.APIURL = w.API() + "/" }), one},
			}
			for name, tc := range good {
				if got := expectFetched(t, sources, tc.ref); got.Digest != digestOfArchive(tc.want) {
					t.Errorf("%s: it is another one", name)
				}
			}
			at := "chart.github: " + w.URL(demoRepository) + " release "
			for ref, want := range map[*reference.Reference][2]string{
				ptrTo(w.chart("9.9.9")): {failure.ArtifactNotFound, at + "9.9.9: the server has no release with tag \"9.9.9\" in repository demo/charts, or doesn't show it to these credentials; " +
					"publish it, correct github.url, github.tagPrefix or version, or name a Secret in github.secretRef whose token may read the repository"},
				ptrTo(w.chart("3.0.0")): {failure.ArtifactNotFound, "no release with tag \"3.0.0\""}, // a draft
				ptrTo(w.chart("4.0.0")): {failure.ArtifactNotFound, at + "4.0.0: the release has no files; put the archive there"},
				ptrTo(w.chart("1.0.0+7", prefixed("charts/demo/v"))): {failure.ArtifactInvalid, at + "charts/demo/v1.0.0+7: 2 files of the release are called \"*.tgz\": \"demo-1.0.0.tgz\", \"other-1.0.0.tgz\"; " +
					"set github.asset so that it fits one of them"},
				ptrTo(w.chart("many")): {failure.ArtifactNotFound, "\"file-06.txt\", \"file-07.txt\", and others; put the archive there, or correct github.asset"},
				ptrTo(w.manifests("1.0.0", called("none.yaml"))): {failure.ArtifactNotFound, "manifests.github: " + w.URL(demoRepository) + " release 1.0.0 file none.yaml: the release has no file called \"none.yaml\", but " +
					"\"demo-1.0.0.tgz\", \"demo-1.0.0.tgz.prov\", \"notes.txt\"; put the archive or file of manifests there, or correct github.asset"},
				ptrTo(w.chart("page")): {failure.ArtifactInvalid, "the release's file \"demo.tgz\" is no archive: it isn't compressed with gzip"},
				ptrTo(w.chart("1.0.0", being(digestOfArchive(two)))): {failure.DigestMismatch, at + "1.0.0@" + digestOfArchive(two) + ": the release's file \"demo-1.0.0.tgz\" is " + digestOfArchive(one) +
					", not github.digest; correct one of github.digest and version. " + place.IfFollowed},
			} {
				expectRefused(t, get(t, sources, *ref), want[0], want[1])
			}
			if got := w.Leaked(); len(got) > 0 {
				t.Errorf("the storage host was shown %q", got)
			}
		})
	}
}

func ptrTo[T any](value T) *T { return &value }

// One release takes one request, and one for its file; what was found is shared.
func TestRequestsForARelease(t *testing.T) {
	w := startGitHub(t, github.Options{Token: sentinelToken})
	w.publish("1.0.0", file("demo-1.0.0.tgz", chartVersion(t, "1.0.0")))
	sources := w.sources(t, "")
	for range 5 {
		expectFetched(t, sources, w.chart("1.0.0"))
	}
	want := []string{
		"GET /api/v3/repos/demo/charts/releases/tags/1.0.0 200",
		"GET /api/v3/repos/demo/charts/releases/assets/2 302", "GET storage/demo/charts/2 200",
	}
	if got := w.Requests(); !slices.Equal(got, want) {
		t.Errorf("requests %q, want %q", got, want)
	}
	w.clock.Step(time.Hour)
	expectFetched(t, sources, w.chart("1.0.0", called("demo-*.tgz"))) // the same archive, asked for by another name
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
	expectRefused(t, err, failure.ArtifactNotFound, "the release lists file \"demo-1.0.0.tgz\", but there is none")
	w.clock.Step(failure.MaxRetry * 2)
	_, err = sources.Fetch(t.Context(), w.chart("1.0.0"), digest)
	expectRefused(t, err, failure.ArtifactChanged, "set github.digest to that of the content that is to be installed")
}

func TestFollowReleases(t *testing.T) {
	w := startGitHub(t, github.Options{Token: sentinelToken})
	one := chartVersion(t, "1.0.0")
	w.publish("demo-1.0.0", file("demo-1.0.0.tgz", one)) // the oldest is on the last page
	for i := range 250 {
		w.publish(fmt.Sprintf("other-2.0.%d", i))
	}
	w.Publish(demoRepository, github.Release{Tag: "demo-1.9.0", Draft: true})
	sources := w.sources(t, "")
	ref := w.chart("~1", prefixed("demo-"))
	expectNewest(t, sources, ref, w.clock.Now(), "1.0.0")
	page := "GET /api/v3/repos/demo/charts/releases?page="
	if got, want := w.Requests(), []string{page + "1 200", page + "2 200", page + "3 200"}; !slices.Equal(got, want) {
		t.Errorf("requests %q, want %q", got, want)
	}
	expectNewest(t, sources, w.chart("~2", prefixed("other-")), w.clock.Now(), "2.0.249") // the same list
	if got := w.Requests(); len(got) > 0 {
		t.Errorf("requests %q", got)
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
	if digest := expectPinned(t, sources, ref, "1.0.0"); digest != digestOfArchive(one) {
		t.Errorf("it is pinned by %s", digest)
	}
	_, err := newest(t, sources, w.chart("~1", prefixed("none-")), w.clock.Now())
	expectRefused(t, err, failure.ArtifactNotFound, "repository demo/charts has no release whose tag starts with \"none-\"; publish one, or correct github.url or github.tagPrefix")
}

func TestRateLimitOfReleases(t *testing.T) {
	for name, limit := range map[string]struct {
		set  func(w *githubWorld)
		wait time.Duration
		why  string
	}{
		"used up":               {func(w *githubWorld) { w.LimitRate(0, w.clock.Now().Add(10*time.Minute)) }, 10 * time.Minute, "the rate limit of these credentials is used up"},
		"too fast":              {func(w *githubWorld) { w.LimitSecondary(w.clock.Now().Add(time.Minute), false) }, time.Minute, "the rate limit of these credentials is used up"},
		"too fast, with a time": {func(w *githubWorld) { w.LimitSecondary(w.clock.Now().Add(2*time.Minute), true) }, 2 * time.Minute, "429 Too Many Requests, or Retry-After"},
	} {
		t.Run(name, func(t *testing.T) {
			w := startGitHub(t, github.Options{Token: sentinelToken})
			w.publish("1.0.0", file("demo-1.0.0.tgz", chartVersion(t, "1.0.0")))
			w.publish("2.0.0", file("demo-2.0.0.tgz", chartVersion(t, "2.0.0")))
			sources := w.sources(t, "")
			limit.set(w)
			first := asError(t, get(t, sources, w.chart("1.0.0")))
			want := w.Host + " asks to be left alone for a while (" + limit.why + "); it is asked again then"
			if first.Reason != failure.SourceUnavailable || first.Err.Error() != want || first.RetryAfter < limit.wait || first.RetryAfter > limit.wait+2*time.Second {
				t.Errorf("%s after %s", first, first.RetryAfter)
			}
			w.Requests()
			w.clock.Step(limit.wait / 2)
			again := asError(t, get(t, sources, w.chart("2.0.0"))) // nobody asks, whatever it is
			if again.RetryAfter < limit.wait/2 || again.Err.Error() != want {
				t.Errorf("%s after %s", again, again.RetryAfter)
			}
			if got := w.Requests(); len(got) > 0 {
				t.Errorf("requests %q", got)
			}
			w.clock.Step(again.RetryAfter)
			for _, version := range []string{"1.0.0", "2.0.0"} {
				if err := get(t, sources, w.chart(version)); err != nil {
					t.Error(err)
				}
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
	expectRefused(t, err, failure.SourceUnauthorized, w.Host+" answers 401 Unauthorized to the provider instance's own credentials")
	expectNoSecrets(t, err.Error())
	if err := os.Remove(filepath.Join(w.dir, credentials.KeyOf(w.Host)+".token")); err != nil {
		t.Fatal(err)
	}
	expectRefused(t, get(t, sources, w.chart("1.0.0")), failure.ArtifactNotFound, "or doesn't show it to these credentials")
	w.giveToken(t, sentinelToken)
	if err := get(t, sources, w.chart("1.0.0")); err != nil {
		t.Error(err)
	}
	w.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
		http.Error(w, "sentinel", http.StatusForbidden)
		return true
	})
	err = get(t, sources, w.chart("2.0.0"))
	expectRefused(t, err, failure.SourceUnauthorized, "answers 403 Forbidden")
	expectNoSecrets(t, err.Error())
}

// A server may promise any digests: who lists the files of others doesn't get them.
func TestPromisedDigestsGiveNoRight(t *testing.T) {
	w := startGitHub(t, github.Options{})
	data := []byte("password: hunter2")
	w.publish("1", file("values.yaml", data))
	w.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/repos/evil/list/releases/tags/1") {
			return false
		}
		listed := layout.PartOf("values.yaml", data)
		_, err := fmt.Fprintf(w, `{"tag_name": "1", "assets": [{"id": 4711, "name": %q, "size": %d, "state": "uploaded", "digest": %q}]}`, listed.Name, listed.Size, listed.Digest)
		return err == nil
	})
	store := t.TempDir()
	sources := w.sources(t, store)
	private := expectFetched(t, sources, w.bundle("1"))
	evil := reference.BundleOf("team-b", &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{
		GitHub: &addonsv1.GitHubSource{URL: w.URL("evil/list")}, Version: "1"}})
	for name, sources := range map[string]*Sources{"in memory": sources, "on disk": w.sources(t, store)} {
		if digest := expectResolved(t, sources, evil); digest != private.Digest {
			t.Fatalf("%s: it is %s, not the list of others' files", name, digest)
		}
		expectRefused(t, get(t, sources, evil), failure.ArtifactNotFound, `lists file "values.yaml", but there is none`)
	}
}

func TestHostileReleases(t *testing.T) {
	asset := func(id int, name string) string {
		return fmt.Sprintf(`{"id": %d, "name": %q, "size": 3, "state": "uploaded"}`, id, name)
	}
	release := func(assets ...string) string {
		return `{"tag_name": "1", "assets": [` + strings.Join(assets, ", ") + `]}`
	}
	many := make([]string, 0, 1001)
	for i := range 1001 {
		many = append(many, asset(i+1, fmt.Sprint(i)))
	}
	for name, tc := range map[string]struct {
		answer, reason, says string
	}{
		"no JSON":          {"sentinel", failure.ArtifactInvalid, "isn't what GitHub's API does; correct github.url or github.apiURL"},
		"a list":           {"[]", failure.ArtifactInvalid, "isn't what GitHub's API does"},
		"nothing":          {"null", failure.ArtifactNotFound, "no release with tag"},
		"another release":  {strings.Replace(release(asset(1, "a")), `"1"`, `"2"`, 1), failure.ArtifactNotFound, "no release with tag"},
		"no name":          {release(`{"id": 1, "size": 3}`), failure.ArtifactRefused, "empty"},
		"no number":        {release(`{"name": "a", "size": 3}`), failure.ArtifactInvalid, "isn't what GitHub's API does"},
		"a size below 0":   {release(`{"id": 1, "name": "a", "size": -3}`), failure.ArtifactInvalid, "isn't what GitHub's API does"},
		"a huge file":      {release(`{"id": 1, "name": "a", "size": 999999999999}`), failure.ArtifactTooLarge, `file "a" is larger than 10485760 bytes`},
		"a path":           {release(asset(1, "../../a")), failure.ArtifactRefused, "leaves the chart"},
		"a directory":      {release(asset(1, "a/b")), failure.ArtifactRefused, "more than one part"},
		"a line break":     {release(asset(1, "a\nb")), failure.ArtifactRefused, "control characters"},
		"twice":            {release(asset(1, "a"), asset(2, "a")), failure.ArtifactRefused, "there twice"},
		"too many files":   {release(many...), failure.ArtifactTooLarge, "more than 1000 files"},
		"many files":       {release(many[:128+1]...), failure.ArtifactTooLarge, "more than 128 files"},
		"large in sum":     {release(strings.Replace(asset(1, "a"), "3", "9000000", 1), strings.Replace(asset(2, "b"), "3", "9000000", 1), strings.Replace(asset(4, "c"), "3", "9000000", 1), strings.Replace(asset(5, "d"), "3", "9000000", 1)), failure.ArtifactTooLarge, "its content is larger than 33554432 bytes"},
		"a huge answer":    {`{"tag_name": "1", "body": "` + strings.Repeat("x", 4<<20) + `"}`, failure.ArtifactTooLarge, "the description of the release is larger than 4194304 bytes"},
		"a deep answer":    {strings.Repeat("[", 1<<20), failure.ArtifactInvalid, "isn't what GitHub's API does"},
		"still on its way": {release(`{"id": 1, "name": "a", "state": "starter"}`), failure.ArtifactNotFound, "the release has no files"},
	} {
		t.Run(name, func(t *testing.T) {
			w := startGitHub(t, github.Options{})
			w.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
				_, _ = w.Write([]byte(tc.answer)) // who asked may have read enough
				return true
			})
			expectRefused(t, get(t, w.sources(t, ""), w.bundle("1")), tc.reason, tc.says)
		})
	}
}

func TestHostileListsOfReleases(t *testing.T) {
	for name, tc := range map[string]struct {
		link, answer, reason, says string
		requests                   int
	}{
		"pages without end": {`<https://x/?page=%d>; rel="next"`, "[]", failure.ArtifactTooLarge, "more than 100 pages; name an exact version", 100},
		"the same page":     {`<https://x/?page=1>; rel="next"`, "[]", failure.ArtifactInvalid, "isn't what GitHub's API does", 1},
		"no list":           {"", "{}", failure.ArtifactInvalid, "isn't what GitHub's API does", 1},
		"nothing":           {"", "null", failure.ArtifactNotFound, "has no release", 1},
		"a huge page":       {"", `[{"body": "` + strings.Repeat("x", 32<<20) + `"}]`, failure.ArtifactTooLarge, "larger than 33554432 bytes", 1},
		"no tags":           {"", `[{"tag_name": null}, {"tag_name": ""}, {}]`, failure.ArtifactNotFound, "has no release", 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := startGitHub(t, github.Options{})
			page := 1
			w.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
				if page++; tc.link != "" {
					w.Header().Set("Link", strings.Replace(tc.link, "%d", fmt.Sprint(page), 1))
				}
				_, _ = w.Write([]byte(tc.answer)) // who asked may have read enough
				return true
			})
			_, err := newest(t, w.sources(t, ""), w.chart("1.x"), w.clock.Now())
			expectRefused(t, err, tc.reason, tc.says)
			if got := len(w.Requests()); got != tc.requests {
				t.Errorf("%d requests", got)
			}
		})
	}
}
