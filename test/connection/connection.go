// SPDX-License-Identifier: Apache-2.0

// Package connection connects to servers that stand for workload clusters, for tests of what
// such a cluster may answer.
package connection

import (
	"context"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/fleet/fleettest"
	"github.com/cluster-chandler/chandler/test/must"
)

// source finds no clusters by itself: a test reports them.
type source struct{ fleet.Sink }

func (*source) Name() string { return "" }
func (s *source) SetupWithManager(_ manager.Manager, sink fleet.Sink) error {
	s.Sink = sink
	return nil
}
func (*source) Refresh(multicluster.ClusterName) {}

// nobody is told of clusters.
type nobody struct{}

func (nobody) Engage(context.Context, multicluster.ClusterName, cluster.Cluster) error { return nil }

// Paths are those that the server of a cluster may have in its address.
var Paths = map[string]string{"no path": "", "a path": "/k8s/clusters/c-1"}

// To connects to a server that answers all but probes with a handler.
func To(t testing.TB, handler http.HandlerFunc) *fleet.Connection {
	t.Helper()
	return At(t, "", handler)
}

// At connects to such a server below a path.
func At(t testing.TB, below string, handler http.HandlerFunc) *fleet.Connection {
	t.Helper()
	_, connect, _ := with(t, nil, below, handler)
	return connect()
}

// Counting connects to such a server, whose answers count in a budget for the cluster ns/prod.
func Counting(t testing.TB, memory *budget.Budget, handler http.HandlerFunc) *fleet.Connection {
	t.Helper()
	_, connect, _ := with(t, memory, "", handler)
	return connect()
}

// Again connects to such a server as often as it is asked to, once each connection before it was
// ended.
func Again(t testing.TB, handler http.HandlerFunc) (connect func() *fleet.Connection, end func()) {
	t.Helper()
	_, connect, end = with(t, nil, "", handler)
	return connect, end
}

// Fleet returns the provider of a connection to such a server, the cluster ns/prod.
func Fleet(t testing.TB, handler http.HandlerFunc) *fleet.Provider {
	t.Helper()
	clusters, connect, _ := with(t, nil, "", handler)
	connect()
	return clusters
}

func with(t testing.TB, memory *budget.Budget, below string, handler http.HandlerFunc) (clusters *fleet.Provider, connect func() *fleet.Connection, end func()) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.StripPrefix(below, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/version" {
			_, _ = io.WriteString(w, `{"gitVersion":"v1.36.3"}`)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		handler(w, r)
	})))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	kubeconfig := fleettest.Kubeconfig(server.URL+below, ca, &clientcmdapi.AuthInfo{Token: "t"})
	reported := &source{}
	clusters = fleet.NewProvider(fleet.Options{AllowLoopback: true, DirectReads: true, Memory: memory, Sources: []fleet.Source{reported}})
	must.Succeed(t, clusters.SetupWithManager(nil))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = clusters.Start(ctx, nobody{}) }()
	t.Cleanup(func() { cancel(); <-ended })
	connect = func() (conn *fleet.Connection) {
		t.Helper()
		reported.Set("ns/prod", fleet.Member{ID: "1", Kubeconfig: kubeconfig})
		if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(context.Context) (ok bool, _ error) {
			conn, ok = clusters.Connection("ns/prod")
			return ok, nil
		}); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	return clusters, connect, func() { reported.Remove("ns/prod") }
}
