// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// mostLeft is how much larger the heap may be after any number of replacements, in bytes, and
// held how long timers of HTTP/2 may keep closed connections.
const (
	mostLeft = 1 << 20
	held     = 2 * time.Minute
)

// A name is engaged once at a time, also when one cluster follows another, and not any
// more once the provider has ended. Nothing is left of those that were replaced.
func TestEngageEndsBeforeTheNext(t *testing.T) {
	var running, most, calls atomic.Int32
	f := startFleet(t, quick(), func(context.Context, multicluster.ClusterName, cluster.Cluster) error {
		now := running.Add(1)
		defer running.Add(-1)
		if now > most.Load() {
			most.Store(now)
		}
		calls.Add(1)
		<-time.After(50 * time.Millisecond) // it doesn't look at the context
		return nil
	})
	s := newServer(t)
	replace := func(times int) {
		for i := range times {
			before := calls.Load()
			f.Set("a/b", Member{ID: fmt.Sprint(before, "-", i), Kubeconfig: s.kubeconfig()})
			await(t, "it isn't engaged", func() bool { return calls.Load() != before })
		}
	}
	replace(3)
	goroutines, heap := ours(), liveHeap()
	replace(replacements(t))
	eventually(t, func() string {
		if n := ours(); n > goroutines {
			return fmt.Sprintf("%d goroutines before, %d after:\n%s", goroutines, n, stacks())
		}
		return ""
	})
	f.mu.Lock()
	clear(f.engaged)
	f.mu.Unlock()
	after := liveHeap()
	for deadline := time.Now().Add(held); after > heap+mostLeft && time.Now().Before(deadline); after = liveHeap() {
		time.Sleep(time.Second)
	}
	t.Logf("%d KiB of heap before, %d after", heap>>10, after>>10)
	if after > heap+mostLeft {
		t.Error("something is left of those that were replaced")
	}
	f.stop()
	if n := most.Load(); n != 1 {
		t.Errorf("%d calls at once", n)
	}
	if n := running.Load(); n != 0 {
		t.Errorf("%d calls after the end", n)
	}
}

// replacements is how often a cluster is replaced.
func replacements(t *testing.T) int {
	t.Helper()
	value := os.Getenv("CHANDLER_REPLACEMENTS")
	if value == "" {
		return 10
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// liveHeap is what is reachable, in bytes.
func liveHeap() uint64 {
	for range 3 { // finalizers, and what pools keep for a while
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
