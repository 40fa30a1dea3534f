// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/budget"
)

// discovered has a cluster say that it has so many kinds, and returns the connection once they are known.
func (c *clusters) discovered(t *testing.T, name multicluster.ClusterName, groups, kinds int, text string) *fleet.Connection {
	t.Helper()
	conn := c.connect(t, name, "", manyKinds(groups, kinds, text))
	if _, err := conn.Facts(t.Context()); err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestDiscoveryKept has 20 clusters say as much about their kinds as they may, each something else.
func TestDiscoveryKept(t *testing.T) {
	const many, most = 20, 200
	memory := budget.New(budget.Limits{All: 512 * mib, Namespace: 256 * mib, Cluster: 64 * mib})
	c := start(t, fleet.Options{Memory: memory, QPS: 1000, Burst: 1000})
	var conns []*fleet.Connection
	for i := range many {
		misbehave := manyKinds(50, 100, fmt.Sprintf("-%d-%s", i, strings.Repeat("n", 175)), strings.Repeat("g", 200))
		conns = append(conns, c.connect(t, multicluster.ClusterName(fmt.Sprintf("a/b%d", i)), "", misbehave))
	}
	before := liveMiB()
	for _, conn := range conns {
		if _, err := conn.Facts(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	live, claimed := liveMiB()-before, float64(memory.Usage().Claimed)/mib
	t.Logf("%d clusters with 5,000 kinds each: %.0f MiB on the heap, %.0f claimed", many, live, claimed)
	if live > most || claimed < 0.9*live || claimed > 2*live {
		t.Errorf("%.0f MiB are on the heap, and %.0f are claimed; want at most %d", live, claimed, most)
	}
	for i := range many {
		c.Remove(multicluster.ClusterName(fmt.Sprintf("a/b%d", i)))
	}
	claims(t, memory, 0)
	runtime.KeepAlive(conns) // others may hold on to a connection that has ended
}

// TestEqualDiscoveriesCountOnce as long as one of the clusters has them.
func TestEqualDiscoveriesCountOnce(t *testing.T) {
	memory := budget.New(budget.Limits{Cluster: 64 * mib})
	c := start(t, fleet.Options{Memory: memory})
	c.discovered(t, "a/first", 5, 100, "same")
	one := memory.Usage().Claimed
	c.discovered(t, "b/second", 5, 100, "same")
	if both := memory.Usage().Claimed; both != one || one == 0 {
		t.Errorf("one takes %d bytes, both %d", one, both)
	}
	c.Remove("a/first")
	runtime.GC()
	claims(t, memory, one)
	if memory.Usage().Claimed != one {
		t.Error("it ends while a cluster has it")
	}
	c.Remove("b/second")
	claims(t, memory, 0)
}

// TestKindsOfLaterCount has a cluster asked for kinds that its discovery doesn't have.
func TestKindsOfLaterCount(t *testing.T) {
	memory := budget.New(budget.Limits{Cluster: 64 * mib})
	c := start(t, fleet.Options{Memory: memory})
	conn := c.discovered(t, "a/b", 5, 100, "")
	shared := memory.Usage().Claimed
	before := liveMiB()
	mapper := conn.GetRESTMapper()
	for g := range 5 {
		if _, err := mapper.RESTMapping(schema.GroupKind{Group: fmt.Sprint("g", g), Kind: "Missing"}); err == nil {
			t.Error("a kind is there that no server has")
		}
	}
	live, claimed := liveMiB()-before, float64(memory.Usage().Claimed-shared)/mib
	t.Logf("%.1f MiB on the heap, %.1f claimed", live, claimed)
	if claimed < live/2 || claimed > 3*live {
		t.Errorf("%.1f MiB are on the heap, and %.1f are claimed", live, claimed)
	}
	conn.InvalidateFacts()
	if _, err := conn.Facts(t.Context()); err != nil {
		t.Fatal(err)
	}
	claims(t, memory, shared)
	if err := client.IgnoreNotFound(conn.Client().Get(t.Context(), client.ObjectKey{Name: "a"}, &corev1.Namespace{})); err == nil {
		t.Error("a kind is there that no server has")
	}
	if memory.Usage().Claimed <= shared {
		t.Error("the connection's own RESTMapper isn't counted")
	}
	c.Remove("a/b")
	claims(t, memory, 0)
}

// TestDocumentsCountUntilAllAreRead has a cluster keep the second of two documents back. The first one counts meanwhile.
func TestDocumentsCountUntilAllAreRead(t *testing.T) {
	memory := budget.New(budget.Limits{Cluster: 64 * mib})
	kinds := manyKinds(2, 1000, strings.Repeat("n", 250))
	asked, answer := make(chan struct{}), make(chan struct{})
	conn := start(t, fleet.Options{Memory: memory, Timeout: time.Hour}).connect(t, "a/b", "", func(r *http.Request) http.HandlerFunc {
		if r.URL.Path == "/apis/g1/v1" {
			asked <- struct{}{}
			<-answer
		}
		return kinds(r)
	})
	found := make(chan error, 1)
	go func() {
		_, err := conn.Facts(t.Context())
		found <- err
	}()
	<-asked
	if claimed := memory.Usage().Claimed; claimed < mib/2 {
		t.Errorf("%d KiB are claimed for a document of 500 KiB", claimed>>10)
	}
	close(answer)
	if err := <-found; err != nil {
		t.Error(err)
	}
}
