// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// tokensOfLength is a registry, and its token service, with tokens of so many bytes, one for each repository. It has tags in each.
func tokensOfLength(t testing.TB, length int) (host string) {
	t.Helper()
	server := serving(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/token":
			_, _ = io.WriteString(w, `{"token": "`+strings.Repeat("x", length)+`"}`)
		case r.Header.Get("Authorization") == "":
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token",service="demo",scope="repository:%s:pull"`, r.Host, r.URL.Path))
			w.WriteHeader(http.StatusUnauthorized)
		default:
			sendTags(w, []string{"1.0.0"})
		}
	})
	server.Config.MaxHeaderBytes = 1 << 20
	return hostOf(server)
}

// inMallorys is a repository of a registry, in a stack of a namespace.
func inMallorys(host string, repository int) reference.Reference {
	ref := plainly(inRegistry(fmt.Sprintf("oci://%s/%d", host, repository), ""))
	ref.Namespace = "mallory"
	return of(">=1.0.0", ref)
}

func TestTokensAreBounded(t *testing.T) {
	long.InCI(t)
	for name, tc := range map[string]struct {
		length int
		reason string
	}{
		"as long as they may be": {16 << 10, ""},
		"too long":               {16<<10 + 1, failure.SourceUnavailable},
		"much too long":          {1 << 20, failure.SourceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			host := tokensOfLength(t, tc.length)
			memory := budget.New(budget.Limits{All: 64 << 20, Namespace: 32 << 20})
			sources, clock := remoteSources(t, source.Options{Memory: memory})
			before := liveHeap()
			for i := range 500 {
				_, err := newest(t, sources, inMallorys(host, i), clock.Now())
				expectRefused(t, err, tc.reason)
				if tc.reason != "" && !strings.Contains(err.Error(), host) {
					t.Fatalf("%v doesn't name %s", err, host)
				}
			}
			after, usage := liveHeap(), memory.Usage()
			if after > before+6<<20 || usage.Cached > 6<<20 || usage.Claimed != 0 {
				t.Errorf("500 tokens take %d KiB, and %+v is counted", (after-before)>>10, usage)
			}
			if tc.reason == "" && usage.Cached < 3<<20 {
				t.Errorf("no token is kept: %+v is counted", usage)
			}
			runtime.KeepAlive(sources)
		})
	}
}

// TestTokensAreSharedByNamespace has a namespace get many tokens. That of another one is still there.
func TestTokensAreSharedByNamespace(t *testing.T) {
	long := tokensOfLength(t, 16<<10)
	w := startTokenWorld(t)
	sources, ref := w.sources(t, hostOf(w.registry), map[string]string{"username": sentinelUser, "password": sentinelPassword})
	ref.Namespace = "victim"
	expectFetched(t, sources, ref)
	for i := range 500 {
		_, err := newest(t, sources, inMallorys(long, i), time.Time{})
		must.Succeed(t, err)
	}
	expectResolved(t, sources, of("2.0.0", ref))
	must.Equal(t, 1, w.given.Load(), "tokens were asked for")
}

// TestEditsLeaveNothing follows ten thousand repositories at a thousand hosts, one after the other.
func TestEditsLeaveNothing(t *testing.T) {
	long.InCI(t)
	const edits, hosts = 10_000, 1000
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		sendTags(w, []string{"1.0.0", "1.0.1", "1.0.2", "1.0.3"})
	}))
	listener, err := net.Listen("tcp", "0.0.0.0:0")
	must.Succeed(t, err)
	must.Succeed(t, server.Listener.Close())
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(listener.Addr().String())
	must.Succeed(t, err)
	memory := budget.New(budget.Limits{All: 1 << 30, Namespace: 512 << 20})
	sources, clock := remoteSources(t, source.Options{Memory: memory})
	edit := func(i int) {
		at := i % hosts
		_, err := newest(t, sources, inMallorys(fmt.Sprintf("127.1.%d.%d:%s", at/250, 1+at%250, port), i), clock.Now())
		must.Succeed(t, err)
	}
	edit(0)
	before := liveHeap()
	for i := range edits {
		edit(i)
	}
	if after := liveHeap(); after > before+16<<20 {
		t.Errorf("after %d edits there are %d MiB more, and %+v is counted", edits, (after-before)>>20, memory.Usage())
	}
	if usage := memory.Usage(); usage.Claimed != 0 {
		t.Errorf("in the end %+v is held", usage)
	}
	runtime.KeepAlive(sources)
}

// liveHeap returns the bytes that are in use.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
