// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// part is a cluster of another provider, of which nothing but its config may be used.
type part struct {
	cluster.Cluster
	config *rest.Config
}

func (p *part) GetConfig() *rest.Config { return p.config }

// parts is a provider of them, which engages what a test tells it to.
type parts struct {
	multicluster.Provider
	to      multicluster.Aware
	mu      sync.Mutex
	indexes []string
}

func (p *parts) IndexField(_ context.Context, _ client.Object, field string, _ client.IndexerFunc) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.indexes = append(p.indexes, field)
	return nil
}

// Start implements multicluster.ProviderRunnable.
func (p *parts) Start(ctx context.Context, to multicluster.Aware) error {
	p.mu.Lock()
	p.to = to
	p.mu.Unlock()
	<-ctx.Done()
	return ctx.Err()
}

// idle is a manager that is never started.
type idle struct{ manager.Manager }

// Add drops what would be started.
func (idle) Add(manager.Runnable) error { return nil }

// starting is a manager that starts at once what is added.
type starting struct {
	manager.Manager
	ctx context.Context //nolint:containedctx // which is that of the test
}

func (s starting) Add(r manager.Runnable) error {
	go func() { _ = r.Start(s.ctx) }()
	return nil
}

// TestClustersOfAnotherProvider get connections of ours: the one that is removed there is gone here.
func TestClustersOfAnotherProvider(t *testing.T) {
	one, two := newServer(t), newServer(t)
	identified(one, "one")
	identified(two, "two")
	other := &parts{}
	o := quick()
	o.Identify = true
	p, _ := startSources(t, o, func(context.Context, multicluster.ClusterName, cluster.Cluster) error { return nil })
	if err := p.AddSource(starting{ctx: t.Context()}, From("parts", other, nil)); err != nil {
		t.Fatal(err)
	}
	await(t, "the provider isn't started", func() bool { other.mu.Lock(); defer other.mu.Unlock(); return other.to != nil })
	engage := func(s *server) context.CancelFunc {
		s.set("v1.36.3", "") // anybody may ask
		ctx, cancel := context.WithCancel(t.Context())
		config := &rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{CAData: s.ca()}}
		if err := other.to.Engage(ctx, "a", &part{config: config}); err != nil {
			t.Fatal(err)
		}
		await(t, "it isn't connected to "+s.URL, func() bool {
			conn, ok := p.Connection("parts#a")
			return ok && conn.GetConfig().Host == s.URL
		})
		return cancel
	}
	leave := engage(one)
	leave()
	await(t, "it is still there", func() bool { _, err := p.Get(t.Context(), "parts#a"); return err != nil })
	leave = engage(one)
	engage(two)
	leave() // the earlier one is over
	time.Sleep(50 * time.Millisecond)
	if _, ok := p.Connection("parts#a"); !ok {
		t.Error("the end of the earlier cluster removes the later one")
	}
}

// TestClustersAreKept as other providers made them: all are one server, and each is engaged as it is.
func TestClustersAreKept(t *testing.T) {
	s := newServer(t)
	identified(s, "the cluster")
	s.set("v1.36.3", "") // anybody may ask
	config := &rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{CAData: s.ca()}}
	other := &parts{}
	source := FromClusters("parts", other, func(mgr mcmanager.Manager) error { other.to = mgr; return nil })
	o := quick()
	o.Identify = true
	var engaged sync.Map
	p, _ := startSources(t, o, func(_ context.Context, name multicluster.ClusterName, c cluster.Cluster) error {
		engaged.Store(name, c)
		return nil
	})
	index := func(field string) {
		if err := p.IndexField(t.Context(), &corev1.Pod{}, field, nil); err != nil {
			t.Fatal(err)
		}
	}
	index("before")
	if err := p.AddSource(idle{}, source); err != nil {
		t.Fatal(err)
	}
	index("after")
	if !slices.Equal(other.indexes, []string{"before", "after"}) {
		t.Errorf("indexes: %v", other.indexes)
	}

	one, two := &part{config: config}, &part{config: config}
	engage := func(name multicluster.ClusterName, c cluster.Cluster) context.CancelFunc {
		ctx, cancel := context.WithCancel(t.Context())
		if err := other.to.Engage(ctx, name, c); err != nil {
			t.Fatal(err)
		}
		return cancel
	}
	leave := engage("one", one)
	engage("two", two)
	is := func(name multicluster.ClusterName, want cluster.Cluster) {
		t.Helper()
		eventually(t, func() string {
			got, err := p.Get(t.Context(), name)
			known, _ := engaged.Load(name)
			if err != nil || got != want || known != want || p.State(name).Phase != PhaseConnected {
				return name.String() + " isn't engaged as it is"
			}
			return ""
		})
		if _, ok := p.Connection(name); ok {
			t.Errorf("%s has a Connection", name)
		}
	}
	is("parts#one", one)
	is("parts#two", two)
	others := &parts{}
	if err := p.AddSource(idle{}, FromClusters("others", others, func(mgr mcmanager.Manager) error { others.to = mgr; return nil })); err != nil {
		t.Fatal(err)
	}
	three := &part{config: config}
	if err := others.to.Engage(t.Context(), "three", three); err != nil {
		t.Fatal(err)
	}
	is("others#three", three)

	again := &part{config: config} // another one of the same config
	engage("two", again)
	is("parts#two", again)

	leave()
	await(t, "it is still there", func() bool { _, err := p.Get(t.Context(), "parts#one"); return err != nil })
	s.status.Store(http.StatusServiceUnavailable) // the probe notices
	await(t, "it is still connected", func() bool { return p.State("parts#two").Phase == PhaseUnreachable })
}
