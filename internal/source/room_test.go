// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/cluster-chandler/chandler/internal/source/artifact"
	"github.com/cluster-chandler/chandler/internal/source/failure"
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

// endless serves archives that never end, each at an address of its own.
func endless(t testing.TB, pause time.Duration) *httptest.Server {
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
	server := endless(t, 0)
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
	if !sources.remote.room.TryAcquire(sources.remote.room.size) {
		t.Error("not all room is given back")
	}
}

// TestSlowSourcesGiveWay has slow sources that would take all of the room.
func TestSlowSourcesGiveWay(t *testing.T) {
	sources, _ := remoteSources(t, Options{})
	sources.remote.room.paceAfter = 200 * time.Millisecond
	slow := endless(t, 400*time.Millisecond) // 80 KiB a second
	var over sync.WaitGroup
	over.Go(func() { fetchAll(t, sources, slow, 20) })
	defer over.Wait()
	defer slow.CloseClientConnections()
	for sources.remote.room.TryAcquire(sources.remote.room.size / 2) {
		sources.remote.room.Release(sources.remote.room.size / 2)
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

// TestSlowSourceAlone has one that is as slow, and nobody waits.
func TestSlowSourceAlone(t *testing.T) {
	r := newRoom(artifact.Limits{}.WithDefaults())
	r.paceAfter = 20 * time.Millisecond
	ctx, reading := r.enter(t.Context())
	body := io.MultiReader(bytes.NewReader(make([]byte, 2*smallBody)), pausing(200*time.Millisecond), strings.NewReader("end"))
	got, err := read(ctx, body, 0, "it", 10<<20)
	if err != nil || len(got) != 2*smallBody+3 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if r.TryAcquire(r.size) {
		t.Error("what is read takes no room")
	}
	reading.done()
	if !r.TryAcquire(r.size) {
		t.Error("the room isn't given back")
	}
}

// pausing ends after a while.
type pausing time.Duration

func (p pausing) Read([]byte) (int, error) { time.Sleep(time.Duration(p)); return 0, io.EOF }

func TestRoomIsKeptUntilUnpacked(t *testing.T) {
	r := newRoom(artifact.Limits{}.WithDefaults())
	ctx, flight := r.carry(t.Context())
	ctx, reading := r.enter(ctx)
	if _, err := read(ctx, bytes.NewReader(make([]byte, 1<<20)), 1<<20, "it", 10<<20); err != nil {
		t.Fatal(err)
	}
	reading.leave(ctx)
	if r.TryAcquire(r.size) {
		t.Error("the room is given back before it is unpacked")
	}
	flight.drop()
	if !r.TryAcquire(r.size) {
		t.Error("the room isn't given back")
	}
}

// TestNobodyWaitsWithRoom has two who want more than there is, each a part after the other.
func TestNobodyWaitsWithRoom(t *testing.T) {
	r := newRoom(artifact.Limits{}.WithDefaults())
	first, one := r.enter(t.Context())
	_, other := r.enter(t.Context())
	for _, reading := range []*reading{one, other} {
		if _, err := reading.take(first, r.size/2); err != nil {
			t.Fatal(err)
		}
	}
	_, err := one.take(first, r.size)
	if known := asError(t, err); known.Reason != failure.SourceUnavailable {
		t.Errorf("got %v", err)
	}
	other.done()
	if _, err = one.take(first, r.size); err != nil {
		t.Error(err)
	}
}

func TestBodiesOfAnyLength(t *testing.T) {
	for name, test := range map[string]struct {
		length, size, most int64
		reason             string
	}{
		"small":                 {10, 10, 100, ""},
		"small, length unknown": {-1, 10, 100, ""},
		"small, too large":      {-1, 101, 100, failure.ArtifactTooLarge},
		"at the small limit":    {smallBody, smallBody, 1 << 20, ""},
		"large":                 {smallBody + 1, smallBody + 1, 1 << 20, ""},
		"large, length unknown": {-1, smallBody + 1, 1 << 20, ""},
		"large, length 0":       {0, 1 << 20, 1 << 20, ""},
		"as large as may be":    {1 << 20, 1 << 20, 1 << 20, ""},
		"too large":             {-1, 1<<20 + 1, 1 << 20, failure.ArtifactTooLarge},
		"longer than it says":   {smallBody + 5, smallBody + 6, 1 << 20, "trailing"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRoom(artifact.Limits{}.WithDefaults())
			ctx, reading := r.enter(t.Context())
			defer reading.done()
			got, err := read(ctx, bytes.NewReader(make([]byte, test.size)), test.length, "it", test.most)
			switch {
			case test.reason == "" && (err != nil || int64(len(got)) != test.size):
				t.Errorf("%d bytes, %v", len(got), err)
			case test.reason == "trailing":
				if err == nil {
					t.Error("it was accepted")
				}
			case test.reason != "" && asError(t, err).Reason != test.reason:
				t.Errorf("got %v", err)
			}
			if over := reading.held - max(test.size, smallBody); over > smallBody {
				t.Errorf("%d bytes more are held than are needed", over)
			}
		})
	}
}
