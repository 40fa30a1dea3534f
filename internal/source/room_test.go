// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/test/targz"
)

// watchHeap returns a function that tells the most memory that was in use meanwhile, in bytes.
func watchHeap() func() int64 {
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	over, most := make(chan struct{}), make(chan int64)
	go func() {
		peak := uint64(0)
		for {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapInuse)
			select {
			case <-over:
				most <- int64(peak) - int64(before.HeapInuse)
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return func() int64 { close(over); return <-most }
}

// endlessBody serves archives that never end, each at an address of its own.
func endlessBody(t testing.TB, pause time.Duration) *httptest.Server {
	t.Helper()
	part := bytes.Repeat([]byte{0x1f, 0x8b}, 16<<10)
	return serving(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(part); err != nil {
				return
			}
			if pause > 0 {
				_ = http.NewResponseController(w).Flush()
				time.Sleep(pause)
			}
		}
	}))
}

// fetchAll fetches so many archives of a server at once, and returns what became of each.
func fetchAll(t testing.TB, sources *Sources, server *httptest.Server, n int) []error {
	t.Helper()
	failed := make([]error, n)
	var done sync.WaitGroup
	for i := range n {
		done.Go(func() {
			digest := fmt.Sprintf("sha256:%064x", i)
			ref := atAddress(fmt.Sprintf("%s/%d.tgz", server.URL, i), digest)
			ref.Chart.HTTP.PlainHTTP = ptr.To(true)
			_, failed[i] = sources.Fetch(t.Context(), ref, digest)
		})
	}
	done.Wait()
	return failed
}

func TestMemoryOfEndlessSources(t *testing.T) {
	sources, _ := remoteSources(t, Options{})
	server := endlessBody(t, 0)
	peak := watchHeap()
	failed := fetchAll(t, sources, server, 50)
	most := peak()
	t.Logf("50 endless archives at once take %d MiB", most>>20)
	if most > 160<<20 {
		t.Errorf("50 endless archives at once take %d MiB", most>>20)
	}
	for _, err := range failed {
		if got := asError(t, err); got.Reason != failure.ArtifactTooLarge {
			t.Errorf("got %v", err)
		}
	}
	if !sources.remote.room.TryAcquire(sources.remote.room.Size) {
		t.Error("not all room is given back")
	}
}

// TestSlowSourcesGiveWay has slow sources that would take all of the room.
func TestSlowSourcesGiveWay(t *testing.T) {
	sources, _ := remoteSources(t, Options{})
	sources.remote.room.PaceAfter = 200 * time.Millisecond
	slow := endlessBody(t, 400*time.Millisecond) // 80 KiB a second
	var over sync.WaitGroup
	over.Go(func() { fetchAll(t, sources, slow, 20) })
	defer over.Wait()
	defer slow.CloseClientConnections()
	for sources.remote.room.TryAcquire(sources.remote.room.Size / 2) {
		sources.remote.room.Release(sources.remote.room.Size / 2)
		time.Sleep(5 * time.Millisecond)
	}

	noise := make([]byte, 1<<20)
	for i, x := 0, uint32(1); i < len(noise); i++ {
		x = x*1664525 + 1013904223
		noise[i] = byte(x >> 24)
	}
	large := targz.Of(t, targz.Entry{Name: "demo/Chart.yaml", Data: targz.ChartYAML}, targz.Entry{Name: "demo/files/noise", Data: string(noise)})
	fast := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(large) }))
	defer fast.Close()
	ref := atAddress(fast.URL+"/demo.tgz", artifact.Content{Archive: large}.Digest())
	ref.Chart.HTTP.PlainHTTP = ptr.To(true)
	begun := time.Now()
	expectFetched(t, sources, ref)
	took := time.Since(begun)
	t.Logf("a fast source took %s", took.Round(time.Millisecond))
	if took > 8*time.Second {
		t.Errorf("a fast source took %s", took)
	}
}
