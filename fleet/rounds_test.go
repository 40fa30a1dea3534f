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
	"testing"

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

// TestEngagementsLeaveNothing has a cluster engaged again and again, each time with a cache that lists. CHANDLER_ENGAGEMENTS
// says how often.
func TestEngagementsLeaveNothing(t *testing.T) {
	rounds := 50
	if n, err := strconv.Atoi(os.Getenv("CHANDLER_ENGAGEMENTS")); err == nil {
		rounds = n
	}
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
	for range rounds {
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
