// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	repo "helm.sh/helm/v4/pkg/repo/v1"
	"k8s.io/utils/ptr"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/registry"
)

// newest looks for the newest version of the range that the reference has for a version.
func newest(t testing.TB, sources *Sources, ref reference.Reference, notBefore time.Time) (string, error) {
	t.Helper()
	return sources.Newest(t.Context(), ref, rangeOf(t, ref.Chart.Version), notBefore)
}

func expectNewest(t testing.TB, sources *Sources, ref reference.Reference, notBefore time.Time, want string) {
	t.Helper()
	if got, err := newest(t, sources, ref, notBefore); err != nil || got != want {
		t.Errorf("newest of %s is %q, %v; want %q", ref.Chart.Version, got, err, want)
	}
}

// expectPinned pins a version, and fetches it as a revision names it.
func expectPinned(t testing.TB, sources *Sources, ref reference.Reference, version string) string {
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
	sources, clock := remoteSources(t, Options{CredentialsDir: dir})
	server.Requests(t)
	ref := inRegistry(server.URL("charts/demo"), "~1.4")

	expectNewest(t, sources, ref, clock.Now(), "1.4.10+build.7")
	other := inRegistry(server.URL("charts/demo"), "1.x")
	other.Namespace = "team-b"
	expectNewest(t, sources, other, clock.Now(), "1.4.10+build.7")
	if got := server.Requests(t); len(got) != 2 || !strings.HasPrefix(got[1], "GET /v2/charts/demo/tags/list") {
		t.Errorf("requests %q, want one list for both, after authentication", got)
	}
	if digest := expectPinned(t, sources, ref, "1.4.10+build.7"); digest != built {
		t.Errorf("pinned %s, want the manifest's digest %s", digest, built)
	}
	server.Requests(t)
	expectPinned(t, sources, ref, "1.4.10+build.7")
	if got := server.Requests(t); len(got) != 0 {
		t.Errorf("what was pinned before is asked for again: %q", got)
	}

	push("1.4.20", "1.4.20")
	expectNewest(t, sources, ref, clock.Now(), "1.4.10+build.7")
	clock.Step(time.Second)
	expectNewest(t, sources, ref, clock.Now().Add(-sharedFor), "1.4.10+build.7")
	expectNewest(t, sources, ref, clock.Now(), "1.4.20")

	_, err := newest(t, sources, inRegistry(server.URL("charts/demo"), "~7"), clock.Now())
	expectError(t, err, failure.ArtifactNotFound, fmt.Sprintf(
		`chart.oci: %s:~7: it has no version that "~7" allows, the newest is "2.0.0"; publish one, or correct version`, server.URL("charts/demo")))
	_, err = newest(t, sources, inRegistry(server.URL("charts/none"), "~7"), clock.Now())
	if known := asError(t, err); known.Reason != failure.ArtifactNotFound || known.RetryAfter <= 0 {
		t.Errorf("got %+v", known)
	}

	push("0.1.0", "1.4.30") // the tag is another version's
	clock.Step(time.Second)
	expectNewest(t, sources, ref, clock.Now(), "1.4.30")
	_, err = sources.Pin(t.Context(), ref, "1.4.30", time.Time{})
	expectError(t, err, failure.DigestMismatch, fmt.Sprintf(
		`chart.oci: %s:1.4.30: tag 1.4.30 holds version "0.1.0" of the chart; publish 1.4.30 anew, or leave it out of the range`, server.URL("charts/demo")))
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
	sources, clock := remoteSources(t, Options{})
	ref := inRepository(server.URL+"/charts", "^1")
	ref.Chart.Helm.PlainHTTP = ptr.To(true)

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
	if err := os.Chtimes(filepath.Join(server.dir, "charts", "index.yaml"), past, past); err != nil {
		t.Fatal(err)
	}
	clock.Step(time.Second)
	expectNewest(t, sources, ref, clock.Now(), "1.2.0") // not modified since, says the server
	if err := os.Chtimes(filepath.Join(server.dir, "charts", "index.yaml"), time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	clock.Step(time.Second)
	expectNewest(t, sources, ref, clock.Now(), "1.3.0")

	ref.Chart.Helm.Chart = "none"
	if _, err := newest(t, sources, ref, clock.Now()); asError(t, err).Reason != failure.ArtifactNotFound {
		t.Errorf("got %v", err)
	}
}

// tagServer is a registry of which there is nothing but the list of tags.
func tagServer(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return "oci://" + strings.TrimPrefix(server.URL, "http://") + "/charts/demo"
}

func atTagServer(url string) reference.Reference {
	ref := inRegistry(url, "^1")
	ref.Chart.OCI.PlainHTTP = ptr.To(true)
	return ref
}

func sendTags(w http.ResponseWriter, tags []string) {
	_ = json.NewEncoder(w).Encode(map[string]any{"name": "charts/demo", "tags": tags})
}

// Ten thousand tags come in pages of what size the registry likes.
func TestTagsComeInPages(t *testing.T) {
	var all []string
	for i := range 10_000 {
		all = append(all, fmt.Sprintf("1.%d.%d", i/100, i%100))
	}
	url := tagServer(t, func(w http.ResponseWriter, request *http.Request) {
		at, _ := strconv.Atoi(request.URL.Query().Get("last"))
		end := min(at+150, len(all))
		if end < len(all) {
			w.Header().Set("Link", fmt.Sprintf(`</v2/charts/demo/tags/list?last=%d&n=150>; rel="next"`, end))
		}
		sendTags(w, all[at:end])
	})
	sources, clock := remoteSources(t, Options{})
	expectNewest(t, sources, atTagServer(url), clock.Now(), "1.99.99")
}

func TestHostileTagLists(t *testing.T) {
	var many []string
	for i := range 20_000 {
		many = append(many, fmt.Sprintf("sha256-%064d.sig", i))
	}
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		reason string
	}{
		"pages without end": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", `</v2/charts/demo/tags/list?last=x>; rel="next"`)
			sendTags(w, nil)
		}, failure.ArtifactTooLarge},
		"tags without end": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", `</v2/charts/demo/tags/list?last=x>; rel="next"`)
			sendTags(w, many)
		}, failure.ArtifactTooLarge},
		"one answer without end": {func(w http.ResponseWriter, request *http.Request) {
			_, _ = w.Write([]byte(`{"tags":["1.0.0`))
			for request.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		}, failure.SourceUnavailable},
		"no list":     {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`<html>`)) }, failure.SourceUnavailable},
		"no versions": {func(w http.ResponseWriter, _ *http.Request) { sendTags(w, many) }, failure.ArtifactNotFound},
		"too many requests": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(http.StatusTooManyRequests)
		}, failure.SourceUnavailable},
		"the next page is on another host": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", `<http://169.254.169.254/v2/charts/demo/tags/list?last=x>; rel="next"`)
			sendTags(w, []string{"1.0.0"})
		}, failure.SourceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			sources, clock := remoteSources(t, Options{})
			_, err := newest(t, sources, atTagServer(tagServer(t, tc.answer)), clock.Now())
			known := asError(t, err)
			if known.Reason != tc.reason {
				t.Errorf("got %s: %v, want %s", known.Reason, err, tc.reason)
			}
			if name == "too many requests" && known.RetryAfter < 2*time.Minute {
				t.Errorf("it is asked again after %s", known.RetryAfter)
			}
		})
	}
}

// A caller that can't wait leaves, and the next one finds the answer.
func TestSlowListsGoOn(t *testing.T) {
	let := make(chan struct{})
	var asked sync.Map
	url := tagServer(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Store(time.Now(), true)
		<-let
		sendTags(w, []string{"1.0.0"})
	})
	sources, clock := remoteSources(t, Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := sources.Newest(ctx, atTagServer(url), rangeOf(t, "*"), clock.Now()); err == nil || ctx.Err() == nil {
		t.Fatalf("got %v", err)
	}
	close(let)
	expectNewest(t, sources, atTagServer(url), clock.Now(), "1.0.0")
	count := 0
	asked.Range(func(any, any) bool { count++; return true })
	if count != 1 {
		t.Errorf("it was asked %d times", count)
	}
}
