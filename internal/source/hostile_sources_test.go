// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/targz"
)

// flood answers with more than anybody takes.
func flood(w io.Writer, what string) {
	for sent := 0; sent < 300<<20; sent += len(what) {
		if _, err := io.WriteString(w, what); err != nil {
			return
		}
	}
}

// badAnswers are in the place of any file that is asked for.
var badAnswers = map[string]struct {
	answer http.HandlerFunc
	reason string
}{
	"endless redirect": {func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Path+"?sentinel="+r.URL.RawQuery, http.StatusFound)
	}, failure.SourceUnavailable},
	"redirect to a metadata server": {func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://[fd00:ec2::254]/?sentinel", http.StatusFound)
	}, failure.ArtifactRefused},
	"nothing": {http.NotFound, failure.ArtifactNotFound},
	"an error": {func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, r.Header.Get("Authorization"), http.StatusBadGateway)
	}, failure.SourceUnavailable},
	"forbidden": {func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, r.Header.Get("Authorization"), http.StatusForbidden)
	}, failure.SourceUnauthorized},
	"unauthorized":         {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "sentinel", http.StatusUnauthorized) }, failure.SourceUnauthorized},
	"an unexpected answer": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, failure.SourceUnavailable},
	"no end":               {func(w http.ResponseWriter, _ *http.Request) { flood(w, strings.Repeat("\x1f\x8b", 1<<15)) }, failure.ArtifactTooLarge},
	"a large answer": {func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(100<<20))
		_, _ = io.WriteString(w, "x")
	}, failure.ArtifactTooLarge},
	"a truncated answer": {func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100000")
		_, _ = io.WriteString(w, "entries:\n")
	}, failure.SourceUnavailable},
	"too many requests": {func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "600")
		http.Error(w, "sentinel", http.StatusTooManyRequests)
	}, failure.SourceUnavailable},
}

// TestHostileSources has each bad answer in the place of an index, an archive that it names,
// one at an address, and what tells of a release.
func TestHostileSources(t *testing.T) {
	digest := digestOf(targz.Chart(t))
	for kind, served := range map[string]struct {
		ref  func(url string) reference.Reference
		good string // path of what is answered properly
	}{
		"index":   {func(url string) reference.Reference { return inRepository(url, "1.0.0") }, "none"},
		"archive": {func(url string) reference.Reference { return inRepository(url, "1.0.0") }, "/index.yaml"},
		"address": {func(url string) reference.Reference { return atAddress(url+"/private/demo.tgz?sentinel", digest) }, "none"},
		"release": {func(url string) reference.Reference { return inRelease(url+"/o/n", "1.0.0") }, "none"},
	} {
		for name, test := range badAnswers {
			t.Run(kind+"/"+name, func(t *testing.T) {
				var requests atomic.Int32
				server, dir := serveAt(t, func(w http.ResponseWriter, r *http.Request) {
					requests.Add(1)
					if r.URL.Path == served.good {
						_, _ = io.WriteString(w, oneVersion("demo.tgz"))
						return
					}
					test.answer(w, r)
				})
				sources, clock := remoteSources(t, source.Options{CredentialsDir: dir})
				ref := plainly(served.ref(server.URL))
				err := get(t, sources, ref)
				expectRefused(t, err, test.reason)
				if known := asError(t, err); known.RetryAfter <= 0 || name == "too many requests" && known.RetryAfter < 10*time.Minute {
					t.Errorf("it is asked again after %s", known.RetryAfter)
				}
				asked := requests.Load()
				again := asError(t, get(t, sources, ref))
				if requests.Load() != asked {
					t.Error("it was asked again at once")
				}
				clock.Step(again.RetryAfter)
				if expectRefused(t, get(t, sources, ref), test.reason); requests.Load() == asked {
					t.Error("it wasn't asked again when it was time")
				}
			})
		}
	}
}

// TestContentThatIsAnother has something else in the place of an archive whose digest is known.
func TestContentThatIsAnother(t *testing.T) {
	digest := digestOf(targz.Chart(t))
	for name, text := range map[string]string{"another archive": string(chartVersion(t, "6.6.6")), "a web page": "<!DOCTYPE html>sentinel"} {
		t.Run(name, func(t *testing.T) {
			index := oneVersion("demo.tgz") + "    digest: " + strings.TrimPrefix(digest, "sha256:") + "\n"
			sources, _, ref := servedBy(t, func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/index.yaml") {
					_, _ = io.WriteString(w, index)
					return
				}
				w.Header().Set("Content-Type", "application/gzip")
				_, _ = io.WriteString(w, text)
			})
			reason := failure.DigestMismatch
			if name == "a web page" {
				reason = failure.ArtifactInvalid
			}
			expectRefused(t, get(t, sources, ref), reason)
			expectRefused(t, get(t, sources, atAddress(ref.Chart.Helm.URL+"/demo.tgz", digest)), failure.DigestMismatch)
			expectRefused(t, get(t, sources, atAddress(ref.Chart.Helm.URL+"/x.tgz", digestOf("a guess"))), failure.DigestMismatch)
		})
	}
}

// An archive is good whatever its host calls it.
func TestContentIsWhatItIsWhateverItIsCalled(t *testing.T) {
	archive := targz.Chart(t)
	sources, _, ref := servedBy(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if strings.HasSuffix(r.URL.Path, "index.yaml") {
			_, _ = io.WriteString(w, oneVersion("demo.tgz"))
			return
		}
		_, _ = w.Write(archive)
	})
	expectFetched(t, sources, ref)
}

// What a host wants to be left alone for holds for all that is there, however many ask.
func TestSourceThatAsksToBeLeftAlone(t *testing.T) {
	var requests atomic.Int32
	sources, clock, ref := servedBy(t, func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.Header().Set("Retry-After", "600")
		http.Error(w, "too many", http.StatusTooManyRequests)
	})
	other := plainly(ref)
	other.Chart.Helm.Chart = "other"
	for range 3 {
		for _, ref := range []reference.Reference{ref, other} {
			err := get(t, sources, ref)
			expectRefused(t, err, failure.SourceUnavailable)
			if known := asError(t, err); !known.Wait || known.RetryAfter <= 0 {
				t.Errorf("wait %v, retry after %s", known.Wait, known.RetryAfter)
			}
		}
		clock.Step(3 * time.Minute)
	}
	must.Equal(t, 1, requests.Load(), "times that it was asked")
	clock.Step(2 * time.Minute)
	expectRefused(t, get(t, sources, ref), failure.SourceUnavailable)
	must.Equal(t, 2, requests.Load(), "requests once the time is over")
}

// TestRetriesAreSpread has many charts at a host that is down: they aren't asked for in
// step, and less and less often.
func TestRetriesAreSpread(t *testing.T) {
	const charts = 20
	sources, clock := remoteSources(t, source.Options{})
	for _, seconds := range []int{1, 2, 4, 8, 15, 15} {
		usual := time.Duration(seconds) * time.Second
		seen := map[time.Duration]bool{}
		for i := range charts {
			err := get(t, sources, inRegistry(fmt.Sprintf("oci://127.0.0.1:1/chart-%d", i), "1.0.0"))
			expectRefused(t, err, failure.SourceUnavailable)
			after := asError(t, err).RetryAfter
			if longest := usual + usual/4; after < usual || after > longest {
				t.Errorf("again after %s, want %s to %s", after, usual, longest)
			}
			seen[after] = true
		}
		if len(seen) < charts/2 {
			t.Errorf("%d charts are asked for at %d different times only, after about %s", charts, len(seen), usual)
		}
		clock.Step(2 * usual)
	}
}
