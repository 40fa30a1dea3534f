// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// From returns a source of the clusters of a multicluster-runtime provider whose clusters are API servers. A cluster that
// the provider engages gets a connection of ours, with our transport, probe and limits. Only the
// rest.Config of the provider's own cluster.Cluster is used. It is trusted: nothing in it is
// checked. The provider continues to run a cache of its own, and stays as patient with dead
// clusters as it is.
//
// A provider whose clusters are parts of a server, such as its namespaces, loses that meaning: each cluster would become
// the whole server. [FromClusters] is for those.
//
// Setup is called with a manager whose Engage leads here, for providers that have a
// SetupWithManager. It may be nil. A provider that is a multicluster.ProviderRunnable is started
// with the manager.
func From(name string, provider multicluster.Provider, setup func(mcmanager.Manager) error) Source {
	return &provided{name: name, provider: provider, setup: setup, rounds: map[multicluster.ClusterName]int{}}
}

// provided is the source that From returns.
type provided struct {
	name     string
	provider multicluster.Provider
	setup    func(mcmanager.Manager) error
	keeps    bool // the provider's own clusters
	sink     Sink

	mu     sync.Mutex
	rounds map[multicluster.ClusterName]int // how often a cluster was engaged
}

// Name implements Source.
func (p *provided) Name() string { return p.name }

// SetupWithManager implements Source.
func (p *provided) SetupWithManager(mgr manager.Manager, sink Sink) error {
	p.sink = sink
	if p.setup != nil {
		mc, err := mcmanager.WithMultiCluster(mgr, nil)
		if err != nil {
			return fmt.Errorf("making a manager for the provider %q: %w", p.name, err)
		}
		if err := p.setup(engaging{Manager: mc, to: p}); err != nil {
			return fmt.Errorf("setting up the provider %q: %w", p.name, err)
		}
	}
	runnable, ok := p.provider.(multicluster.ProviderRunnable)
	if !ok {
		return nil
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if err := runnable.Start(ctx, p); err != nil && !errors.Is(err, context.Canceled) {
			return fmt.Errorf("running the provider %q: %w", p.name, err)
		}
		return nil
	}))
}

// Refresh implements Source. Other providers can't be asked for other credentials.
func (*provided) Refresh(multicluster.ClusterName) {}

// Engage implements multicluster.Aware. The cluster is removed when the context ends, unless it was
// engaged again meanwhile.
func (p *provided) Engage(ctx context.Context, name multicluster.ClusterName, c cluster.Cluster) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rounds[name]++
	round := p.rounds[name]
	m := Member{Config: c.GetConfig(), Origin: "provider " + p.name}
	if p.keeps {
		m.Cluster = c
	}
	p.sink.Set(name, m)
	context.AfterFunc(ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.rounds[name] == round {
			delete(p.rounds, name)
			p.sink.Remove(name)
		}
	})
	return nil
}

// engaging is a manager whose clusters go to a source.
type engaging struct {
	mcmanager.Manager
	to multicluster.Aware
}

// Engage implements multicluster.Aware.
func (e engaging) Engage(ctx context.Context, name multicluster.ClusterName, c cluster.Cluster) error {
	return e.to.Engage(ctx, name, c)
}

// FromClusters returns a source of the clusters of any multicluster-runtime provider, as that provider made them: with
// their caches, clients and meaning. It is for providers whose clusters share a server or a cache. The Provider adds the
// State of each cluster, by a probe with its rest.Config, and Subscribe. A cluster is engaged once it has answered.
//
// There is no [Connection], so our limits and the cache for which only its readers wait aren't there either.
// Indexes are the other provider's. Two of its clusters may be one server: they aren't looked at for duplicates.
//
// Setup is as for [From].
func FromClusters(name string, provider multicluster.Provider, setup func(mcmanager.Manager) error) Source {
	return keeping{&provided{name: name, provider: provider, setup: setup, keeps: true, rounds: map[multicluster.ClusterName]int{}}}
}

// keeping is the source that FromClusters returns.
type keeping struct{ *provided }

// IndexField implements client.FieldIndexer, for all clusters of the provider.
func (k keeping) IndexField(ctx context.Context, object client.Object, field string, extract client.IndexerFunc) error {
	return k.provider.IndexField(ctx, object, field, extract)
}
