// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"bytes"
	"context"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/fleet/fleettest"
)

// clusters is a source of clusters that tests report, with the Provider that connects to them.
type clusters struct {
	*fleet.Provider
	fleet.Sink
	probes atomic.Int32
}

func (*clusters) Name() string                     { return "" }
func (*clusters) Refresh(multicluster.ClusterName) {}
func (c *clusters) SetupWithManager(_ manager.Manager, sink fleet.Sink) error {
	c.Sink = sink
	return nil
}

// Engage implements multicluster.Aware.
func (*clusters) Engage(context.Context, multicluster.ClusterName, cluster.Cluster) error { return nil }

// start runs a Provider until the test ends.
func start(t *testing.T, o fleet.Options) *clusters {
	t.Helper()
	c := &clusters{}
	o.AllowLoopback, o.Sources = true, []fleet.Source{c}
	c.Provider = fleet.NewProvider(o)
	if err := c.Provider.SetupWithManager(nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx, c) }()
	t.Cleanup(func() { cancel(); <-ended }) //nolint:errcheck // tests end it
	return c
}

// connect returns a connection to a new API server, which may be below a path.
func (c *clusters) connect(t *testing.T, name multicluster.ClusterName, below string, misbehave fleettest.Misbehaviour) *fleet.Connection {
	t.Helper()
	s := fleettest.Start(t, func(r *http.Request) http.HandlerFunc {
		path, isBelow := strings.CutPrefix(r.URL.Path, below)
		if !isBelow {
			return http.NotFound
		}
		r.URL.Path = path
		if path == "/version" {
			c.probes.Add(1)
			return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"gitVersion":"v1.36.3"}`)) }
		}
		return misbehave(r)
	})
	c.Set(name, fleet.Member{ID: "1", Kubeconfig: bytes.ReplaceAll(s.Kubeconfig(t), []byte(s.URL), []byte(s.URL+below)), Origin: "test"})
	var conn *fleet.Connection
	soon(t, func() string {
		var connected bool
		if conn, connected = c.Connection(name); connected {
			return ""
		}
		return c.State(name).Message
	})
	return conn
}

// soon waits until a check returns no complaint.
func soon(t *testing.T, check func() string) {
	t.Helper()
	complaint := check()
	for begin := time.Now(); complaint != "" && time.Since(begin) < time.Minute; complaint = check() {
		time.Sleep(10 * time.Millisecond)
	}
	if complaint != "" {
		t.Fatal(complaint)
	}
}

// claims waits until a budget has no more claimed than so many bytes.
func claims(t *testing.T, of *budget.Budget, most int64) {
	t.Helper()
	soon(t, func() string {
		runtime.GC() // what no connection has ends with it
		if u := of.Usage(); u.Claimed > most || u.Waiting > 0 {
			return "some of it is still claimed"
		}
		return ""
	})
}

// liveMiB returns what is on the heap, in MiB.
func liveMiB() float64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc) / (1 << 20)
}
