// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/flight"
	"github.com/cluster-chandler/chandler/internal/source/guest"
	"github.com/cluster-chandler/chandler/internal/source/place"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/targz"
)

// quiet is for servers whose errors a test expects.
var quiet = log.New(io.Discard, "", 0)

// serving starts a server for the handler.
func serving(t testing.TB, handler http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = quiet
	server.Start()
	t.Cleanup(server.Close)
	return server
}

// servedBy is a chart of a Helm repository that the handler serves, with credentials for it.
func servedBy(t testing.TB, handler http.HandlerFunc) (*Sources, *clocktesting.FakeClock, reference.Reference, *httptest.Server) {
	t.Helper()
	server, dir := serveAt(t, handler)
	sources, clock := remoteSources(t, Options{CredentialsDir: dir})
	ref := inRepository(server.URL, "1.0.0")
	ref.Chart.Helm.PlainHTTP = ptr.To(true)
	return sources, clock, ref, server
}

func TestHostileSources(t *testing.T) {
	const huge = 300 << 20 // bytes
	archive := targz.Chart(t)
	digest := strings.TrimPrefix(artifact.Content{Archive: archive}.Digest(), "sha256:")
	index := func(w io.Writer) {
		fmt.Fprintf(w, "entries:\n  demo:\n  - version: 1.0.0\n    digest: %s\n    urls: [demo.tgz]\n", digest)
	}
	flood := func(w io.Writer, what string) {
		for sent := 0; sent < huge; sent += len(what) {
			if _, err := io.WriteString(w, what); err != nil {
				return
			}
		}
	}
	tests := map[string]struct {
		index, archive http.HandlerFunc
		reason, text   string
	}{
		"endless redirect": {
			index: func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, r.URL.Path+"?sentinel="+r.URL.RawQuery, http.StatusFound)
			},
			reason: failure.SourceUnavailable, text: "HOST redirects more than 5 times; correct the address",
		},
		"redirect to a metadata server": {
			index: func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "http://[fd00:ec2::254]/?sentinel", http.StatusFound)
			},
			reason: failure.ArtifactRefused, text: "[fd00:ec2::254] is a loopback, link-local or metadata address, which no object may name; correct the address",
		},
		"server error": {
			index: func(w http.ResponseWriter, r *http.Request) {
				http.Error(w, r.Header.Get("Authorization"), http.StatusBadGateway)
			},
			reason: failure.SourceUnavailable, text: "HOST answers 502 Bad Gateway; it is asked again",
		},
		"forbidden": {
			index: func(w http.ResponseWriter, r *http.Request) {
				http.Error(w, r.Header.Get("Authorization"), http.StatusForbidden)
			},
			reason: failure.SourceUnauthorized,
			text:   "HOST answers 403 Forbidden to the provider instance's own credentials; have them corrected in its Secret chandler-credentials, or name another Secret in its secretRef",
		},
		"an unexpected answer": {
			index:  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
			reason: failure.SourceUnavailable, text: "HOST answers 204 No Content, which isn't expected; correct the address",
		},
		"an index without an end": {
			index:  func(w http.ResponseWriter, _ *http.Request) { flood(w, "x: "+strings.Repeat("y", 1<<16)+"\n") },
			reason: failure.ArtifactTooLarge, text: "the repository's index.yaml: it is larger than what is accepted; have a smaller one made",
		},
		"an index of one line": {
			index:  func(w http.ResponseWriter, _ *http.Request) { flood(w, strings.Repeat("[", 1<<16)) },
			reason: failure.ArtifactTooLarge, text: "the repository's index.yaml: it is larger than what is accepted; have a smaller one made",
		},
		"an archive without an end": {
			archive: func(w http.ResponseWriter, _ *http.Request) { flood(w, strings.Repeat("\x1f\x8b", 1<<15)) },
			reason:  failure.ArtifactTooLarge, text: "the archive is larger than 10485760 bytes, the most that is accepted; make it smaller",
		},
		"another archive": {
			archive: func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(chartVersion(t, "6.6.6")) },
			reason:  failure.DigestMismatch, text: "the archive isn't the one that the index names by its digest: it is damaged, or was tampered with; have it put there again",
		},
		"a truncated archive": {
			archive: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "100000")
				_, _ = w.Write(archive[:len(archive)/2])
			},
			reason: failure.SourceUnavailable, text: "HOST broke off its answer; it is asked again",
		},
		"a web page": {
			archive: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<!DOCTYPE html>") },
			reason:  failure.SourceUnavailable, text: "HOST answers with a web page: something between may want a login, as a proxy does, or it is under maintenance, or the url is that of a page; it is asked again",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			sources, _, ref, server := servedBy(t, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case strings.HasSuffix(r.URL.Path, "index.yaml") && test.index != nil:
					test.index(w, r)
				case strings.HasSuffix(r.URL.Path, "index.yaml"):
					index(w)
				default:
					test.archive(w, r)
				}
			})
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			start := time.Now()
			resolved, err := sources.Resolve(t.Context(), ref)
			if test.archive != nil {
				_, err = sources.Fetch(t.Context(), ref, resolved)
			}
			runtime.ReadMemStats(&after)
			expectError(t, err, test.reason, "chart.helm: "+server.URL+"/demo 1.0.0: "+
				strings.ReplaceAll(test.text, "HOST", strings.TrimPrefix(server.URL, "http://")))
			expectNoSecrets(t, err.Error())
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("it took %s", took)
			}
			if took := int64(after.Sys) - int64(before.Sys); took > 64<<20 {
				t.Errorf("it took %d MiB", took>>20)
			}
			if asError(t, err).RetryAfter <= 0 {
				t.Error("nobody will ask again")
			}
		})
	}
}

func TestSlowSource(t *testing.T) {
	asked := make(chan struct{}, 10)
	sources, clock, ref, server := servedBy(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, "#")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	sources.remote.timeout = 500 * time.Millisecond
	waiting := make(chan error)
	resolve := func() { _, err := sources.Resolve(t.Context(), ref); waiting <- err }
	go resolve()
	<-asked
	for !clock.HasWaiters() {
		runtime.Gosched()
	}
	clock.Step(flight.Patience)
	err := <-waiting
	expectError(t, err, failure.ArtifactPending, "chart.helm: "+server.URL+"/demo 1.0.0: the source is slow; what it has is still being read")
	if known := asError(t, err); !known.Wait || known.RetryAfter != time.Second {
		t.Errorf("wait %v, retry after %s", known.Wait, known.RetryAfter)
	}
	// The next one joins the request, and gets what becomes of it.
	go resolve()
	expectError(t, <-waiting, failure.SourceUnavailable, "chart.helm: "+server.URL+"/demo 1.0.0: "+strings.TrimPrefix(server.URL, "http://")+" doesn't answer in time; it is asked again")
	if len(asked) != 0 {
		t.Error("it was asked twice")
	}
}

func TestSourceThatAsksToBeLeftAlone(t *testing.T) {
	var requests atomic.Int32
	sources, clock, ref, server := servedBy(t, func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.Header().Set("Retry-After", "600")
		http.Error(w, "too many", http.StatusTooManyRequests)
	})
	other := ref
	other.Chart.Helm = ptr.To(*ref.Chart.Helm)
	other.Chart.Helm.Chart = "other"
	for range 3 {
		for _, ref := range []reference.Reference{ref, other} {
			_, err := sources.Resolve(t.Context(), ref)
			known := asError(t, err)
			if want := "chart.helm: " + server.URL + "/" + ref.Chart.Helm.Chart + " 1.0.0: " + strings.TrimPrefix(server.URL, "http://") +
				" asks to be left alone for a while (429 Too Many Requests, or Retry-After); it is asked again then"; err.Error() != want || known.Reason != failure.SourceUnavailable {
				t.Errorf("got %s: %s", known.Reason, err)
			}
			if !known.Wait || known.RetryAfter <= 0 {
				t.Errorf("retry after %s", known.RetryAfter)
			}
		}
		clock.Step(3 * time.Minute)
	}
	if got := requests.Load(); got != 1 {
		t.Errorf("it was asked %d times", got)
	}
	clock.Step(2 * time.Minute)
	if _, err := sources.Resolve(t.Context(), ref); err == nil || requests.Load() != 2 {
		t.Errorf("%v; it was asked %d times, want once more when the time is over", err, requests.Load())
	}
}

func TestCredentialsStayWithTheirHost(t *testing.T) {
	archive := targz.Chart(t)
	stranger := make(chan http.Header, 10)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stranger <- r.Header.Clone()
		_, _ = w.Write(archive)
	}))
	defer elsewhere.Close()
	for name, archiveURL := range map[string]string{"by redirect": "redirected.tgz", "by the index": elsewhere.URL + "/demo.tgz"} {
		t.Run(name, func(t *testing.T) {
			var authorized atomic.Int32
			sources, _, ref, _ := servedBy(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") == "Bearer "+sentinelToken {
					authorized.Add(1)
				}
				if strings.HasSuffix(r.URL.Path, ".tgz") {
					http.Redirect(w, r, elsewhere.URL+"/demo.tgz", http.StatusTemporaryRedirect)
					return
				}
				fmt.Fprintf(w, "entries:\n  demo:\n  - version: 1.0.0\n    urls: [%q]\n", archiveURL)
			})
			expectFetched(t, sources, ref)
			if authorized.Load() == 0 {
				t.Error("the host itself got no credentials")
			}
			for key, values := range <-stranger {
				expectNoSecrets(t, key+strings.Join(values, " "))
			}
		})
	}
}

func TestPanicOfAFlightIsNotOurs(t *testing.T) {
	sources, _, ref, _ := servedBy(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "entries: {}") })
	failed := sources.remote.ask(context.Background(), "x", ref, func(context.Context, place.Place, *guest.Guest) error { panic("a parser's") })
	if failed.err == nil || failed.err.Reason != failure.ArtifactInvalid {
		t.Errorf("got %v", failed.err)
	}
}
