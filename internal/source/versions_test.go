// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	repo "helm.sh/helm/v4/pkg/repo/v1"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/registry"
)

// newest looks for the newest version of the range that the reference has for a version.
func newest(t testing.TB, sources *source.Sources, ref reference.Reference, notBefore time.Time) (string, error) {
	t.Helper()
	return sources.Newest(t.Context(), ref, rangeOf(t, ref.Chart.Version), notBefore)
}

func expectNewest(t testing.TB, sources *source.Sources, ref reference.Reference, notBefore time.Time, want string) {
	t.Helper()
	if got, err := newest(t, sources, ref, notBefore); err != nil || got != want {
		t.Errorf("newest of %s is %q, %v; want %q", ref.Chart.Version, got, err, want)
	}
}

// expectPinned pins a version, and fetches it as a revision names it.
func expectPinned(t testing.TB, sources *source.Sources, ref reference.Reference, version string) string {
	t.Helper()
	digest, err := sources.Pin(t.Context(), ref, version, time.Time{})
	if err != nil {
		t.Fatalf("pinning %s: %v", version, err)
	}
	ref.Chart = *ref.Chart.DeepCopy()
	ref.Chart.Version = version
	switch {
	case ref.Chart.OCI != nil:
		ref.Chart.OCI.Digest = digest
	case ref.Chart.GitHub != nil:
		ref.Chart.GitHub.Digest = digest
	default:
		ref.Chart.Helm.Digest = digest
	}
	expectFetched(t, sources, ref)
	return digest
}

func TestFollowARegistry(t *testing.T) {
	users := map[string]string{sentinelUser: sentinelPassword}
	server := registry.Start(t, registry.Options{Users: users})
	push := func(version, tag string) string {
		return server.Push(t, chartVersion(t, version), "charts/demo", tag)
	}
	for _, version := range []string{"1.3.9", "1.4.0", "v1.4.9", "1.5.0-rc.1", "2.0.0"} {
		push(version, version)
	}
	built := push("1.4.10+build.7", "1.4.10_build.7")
	push("1.4.11", "latest")
	push("1.4.12", "sha256-0123.sig")
	dir := t.TempDir()
	ownCredentialsFor(t, dir, server, sentinelUser, sentinelPassword)
	sources, clock := remoteSources(t, source.Options{CredentialsDir: dir})
	server.Requests(t)
	ref := inRegistry(server.URL("charts/demo"), "~1.4")

	expectNewest(t, sources, ref, clock.Now(), "1.4.10+build.7")
	other := inRegistry(server.URL("charts/demo"), "1.x")
	other.Namespace = "team-b"
	expectNewest(t, sources, other, clock.Now(), "1.4.10+build.7")
	if got := server.Requests(t); len(got) != 2 || !strings.HasPrefix(got[1], "GET /v2/charts/demo/tags/list") {
		t.Errorf("requests %q, want one list for both, after authentication", got)
	}
	must.Equal(t, built, expectPinned(t, sources, ref, "1.4.10+build.7"), "pinned")
	server.Requests(t)
	expectPinned(t, sources, ref, "1.4.10+build.7")
	must.Len(t, 0, server.Requests(t), "what was pinned before is asked for again")

	push("1.4.20", "1.4.20")
	expectNewest(t, sources, ref, clock.Now(), "1.4.10+build.7")
	clock.Step(time.Second)
	expectNewest(t, sources, ref, clock.Now().Add(-sharedFor), "1.4.10+build.7")
	expectNewest(t, sources, ref, clock.Now(), "1.4.20")

	_, err := newest(t, sources, inRegistry(server.URL("charts/demo"), "~7"), clock.Now())
	expectRefused(t, err, failure.ArtifactNotFound)
	_, err = newest(t, sources, inRegistry(server.URL("charts/none"), "~7"), clock.Now())
	if known := asError(t, err); known.Reason != failure.ArtifactNotFound || known.RetryAfter <= 0 {
		t.Errorf("got %+v", known)
	}

	push("0.1.0", "1.4.30") // the tag is another version's
	clock.Step(time.Second)
	expectNewest(t, sources, ref, clock.Now(), "1.4.30")
	_, err = sources.Pin(t.Context(), ref, "1.4.30", time.Time{})
	expectRefused(t, err, failure.DigestMismatch)
	for version, want := range map[string]bool{"1.4.9": false, "v1.4.9": false, "1.4.10+build.7": false, "1.4.10+build.6": true, "1.4.8": true} {
		withdrawn, err := sources.Withdrawn(t.Context(), ref, rangeOf(t, "~1.4"), version, clock.Now())
		if err != nil || withdrawn != want {
			t.Errorf("%s is withdrawn: %v, %v", version, withdrawn, err)
		}
	}

	server.Stop()
	clock.Step(time.Second)
	_, err = newest(t, sources, ref, clock.Now())
	if known := asError(t, err); known.Reason != failure.SourceUnavailable || known.RetryAfter <= 0 {
		t.Errorf("got %+v", known)
	}
	expectNewest(t, sources, ref, clock.Now().Add(-time.Minute), "1.4.30")
}

const sharedFor = 30 * time.Second

func TestFollowAHelmRepository(t *testing.T) {
	server, _ := startRepository(t, true, false)
	index := repo.NewIndexFile()
	for _, version := range []string{"1.0.0", "v1.1.0", "2.0.0"} {
		server.publish(t, index, version, "", true)
	}
	server.publish(t, index, "1.2.0", "", false)
	sources, clock := remoteSources(t, source.Options{Store: storeAt(t.TempDir())})
	ref := plainly(inRepository(server.URL+"/charts", "^1"))

	expectNewest(t, sources, ref, clock.Now(), "1.2.0")
	expectPinned(t, sources, ref, "1.2.0") // its digest isn't in the index
	expectPinned(t, sources, ref, "v1.1.0")
	if got := slices.DeleteFunc(server.asked(), func(r string) bool { return !strings.HasSuffix(r, "index.yaml") }); len(got) != 1 {
		t.Errorf("the index was read %d times", len(got))
	}
	clock.Step(time.Second)
	expectNewest(t, sources, ref, clock.Now(), "1.2.0")
	server.publish(t, index, "1.3.0", "", true)
	past := time.Now().Add(-time.Hour)
	must.Succeed(t, os.Chtimes(filepath.Join(server.dir, "charts", "index.yaml"), past, past))
	clock.Step(time.Second)
	expectNewest(t, sources, ref, clock.Now(), "1.2.0") // not modified since, says the server
	must.Succeed(t, os.Chtimes(filepath.Join(server.dir, "charts", "index.yaml"), time.Time{}, time.Now().Add(time.Hour)))
	clock.Step(time.Second)
	expectNewest(t, sources, ref, clock.Now(), "1.3.0")

	ref.Chart.Helm.Chart = "none"
	if _, err := newest(t, sources, ref, clock.Now()); asError(t, err).Reason != failure.ArtifactNotFound {
		t.Errorf("got %v", err)
	}
}

// Whoever asks for what there is now doesn't get what others found who began before. What
// was found within half a minute does for a turn, but is no newer for that.
func TestLookIsNoOlderThanItIsAskedFor(t *testing.T) {
	for kind, ref := range map[string]func(url string) reference.Reference{
		"helm":   func(url string) reference.Reference { return inRepository(url, "^1") },
		"github": func(url string) reference.Reference { return inRelease(url+"/org/demo", "^1") },
		"oci": func(url string) reference.Reference {
			return inRegistry("oci://"+strings.TrimPrefix(url, "http://")+"/demo", "^1")
		},
	} {
		t.Run(kind, func(t *testing.T) {
			let, begun := make(chan struct{}), make(chan struct{}, 8)
			var version atomic.Value
			version.Store("1.0.0")
			server := serving(t, func(w http.ResponseWriter, _ *http.Request) {
				v := version.Load().(string) // as it is when it is asked for
				begun <- struct{}{}
				<-let
				switch kind {
				case "helm":
					_, _ = fmt.Fprintf(w, "entries:\n  demo:\n  - {version: %s, urls: [x.tgz]}\n", v)
				case "github":
					_, _ = fmt.Fprintf(w, `[{"tag_name":%q}]`, v)
				default:
					sendTags(w, []string{v})
				}
			})
			sources, clock := remoteSources(t, source.Options{})
			at := plainly(ref(server.URL))
			var others sync.WaitGroup
			earlier := clock.Now()
			others.Go(func() { expectNewest(t, sources, at, earlier, "1.0.0") })
			<-begun
			clock.Step(time.Minute)
			version.Store("1.1.0")
			asked := clock.Now()
			others.Go(func() { expectNewest(t, sources, at, asked, "1.1.0") }) // it may join the first
			close(let)
			others.Wait()
			version.Store("1.2.0")
			clock.Step(10 * time.Second)
			expectNewest(t, sources, at, asked, "1.1.0")
			expectNewest(t, sources, at, clock.Now().Add(-sharedFor), "1.1.0")
		})
	}
}
