// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// ours returns how many goroutines run code of this module, or of client-go and controller-runtime for it.
func ours() int {
	stacks := make([]byte, 64<<20)
	n := 0
	for _, stack := range strings.Split(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		for _, by := range []string{"chandler/fleet", "client-go/", "controller-runtime/", "multicluster-runtime/"} {
			if strings.Contains(stack, by) && !strings.Contains(stack, "httptest") {
				n++
				break
			}
		}
	}
	return n
}

// rounds is how often a test does the same, unless a variable says another number.
func rounds(t *testing.T, variable string, usual int) int {
	t.Helper()
	value := os.Getenv(variable)
	if value == "" {
		return usual
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestEngagementsLeaveNothing has a cluster engaged again and again, each time with a cache that lists.
func TestEngagementsLeaveNothing(t *testing.T) {
	s := newServer(t)
	s.instead = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, "/api/v1/pods") {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`)
		return true
	}
	o := quick()
	o.DirectReads = false
	begin := ours()
	f := startFleet(t, o, func(ctx context.Context, _ multicluster.ClusterName, c cluster.Cluster) error {
		if _, err := c.GetCache().GetInformer(ctx, &corev1.Pod{}); err != nil && ctx.Err() == nil {
			return err
		}
		return c.GetClient().List(ctx, &corev1.PodList{})
	})
	engage := func() {
		conn := f.join(t, s)
		if err := conn.GetClient().List(t.Context(), &corev1.PodList{}); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Facts(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.Remove("a/b")
		<-conn.Done()
		f.mu.Lock()
		clear(f.engaged)
		f.mu.Unlock()
	}
	engage() // what is made once
	before := -1
	eventually(t, func() string {
		n := ours()
		same := n == before
		if before = n; !same {
			return "the first engagement doesn't end"
		}
		return ""
	})
	for range rounds(t, "CHANDLER_ENGAGEMENTS", 50) {
		engage()
	}
	least := func(most int, when string) {
		eventually(t, func() string {
			if n := ours(); n > most || s.connections() > 0 {
				return fmt.Sprintf("%d goroutines, %d connections %s; %d goroutines before:\n%s", n, s.connections(), when, most, stacks())
			}
			return ""
		})
	}
	least(before, "after the rounds")
	f.stop()
	least(begin, "after the end")
}

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
	replace(rounds(t, "CHANDLER_REPLACEMENTS", 10))
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

// liveHeap is what is reachable, in bytes.
func liveHeap() uint64 {
	for range 3 { // finalizers, and what pools keep for a while
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
