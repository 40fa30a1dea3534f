// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// SetupWithManager registers the sources with the manager of the cluster that the program runs
// for. Call it before that manager starts. A multicluster manager starts the Provider itself.
func (p *Provider) SetupWithManager(mgr manager.Manager) error {
	named := map[string]bool{}
	for _, source := range p.options.Sources {
		if named[source.Name()] {
			return fmt.Errorf("two sources have the name %q", source.Name())
		}
		named[source.Name()] = true
	}
	for place, source := range p.options.Sources {
		if err := p.register(mgr, source, place); err != nil {
			return err
		}
	}
	return nil
}

// AddSource registers one more source, also while the manager and the Provider run. It comes last where two sources
// name one cluster. The Provider has to identify clusters from the start: see Options.Identify.
func (p *Provider) AddSource(mgr manager.Manager, source Source) error {
	if !p.options.Identify {
		return errors.New("a source is added to a fleet provider whose Options.Identify isn't set")
	}
	p.mu.Lock()
	p.added++
	place := len(p.options.Sources) + p.added
	p.mu.Unlock()
	return p.register(mgr, source, place)
}

// register has a source run with a manager.
func (p *Provider) register(mgr manager.Manager, source Source, place int) error {
	p.mu.Lock()
	if slices.ContainsFunc(p.sources, func(s Source) bool { return s.Name() == source.Name() }) {
		p.mu.Unlock()
		return fmt.Errorf("two sources have the name %q", source.Name())
	}
	p.sources = append(p.sources, source)
	indexes := p.indexes
	p.mu.Unlock()
	for _, i := range indexes {
		if err := i.addTo(context.Background(), source); err != nil {
			return err
		}
	}
	if err := source.SetupWithManager(mgr, p.sink(source, place)); err != nil {
		return fmt.Errorf("setting up the source %q: %w", source.Name(), err)
	}
	return nil
}

// sink returns what takes the clusters of a source.
func (p *Provider) sink(source Source, place int) Sink {
	name := source.Name()
	return Sink{
		onSet: func(cluster multicluster.ClusterName, m Member) {
			p.take(NameOf(name, cluster), reporter{source: source, place: place, name: cluster}, m)
		},
		onRemove: func(cluster multicluster.ClusterName) { p.withdraw(NameOf(name, cluster)) },
		onSynced: func() { p.complete(name) },
	}
}

// index is one that all clusters have, those of now and those that come.
type index struct {
	object  client.Object
	field   string
	extract client.IndexerFunc
}

// addTo adds the index to all clusters of a source that has indexes of its own.
func (i index) addTo(ctx context.Context, source Source) error {
	indexer, ok := source.(client.FieldIndexer)
	if !ok {
		return nil
	}
	if err := indexer.IndexField(ctx, i.object, i.field, i.extract); err != nil {
		return fmt.Errorf("indexing %T by %s in the clusters of source %q: %w", i.object, i.field, source.Name(), err)
	}
	return nil
}

// IndexField implements multicluster.Provider. Like that of a controller-runtime cache, it is
// meant to be called before an informer for the kind runs: set indexes up before the manager starts.
func (p *Provider) IndexField(ctx context.Context, object client.Object, field string, extract client.IndexerFunc) error {
	i := index{object, field, extract}
	p.mu.Lock()
	p.indexes = append(p.indexes, i)
	sources := p.sources
	var connected []*Connection
	for _, l := range p.links {
		if conn := l.published.Load().conn; conn != nil {
			connected = append(connected, conn)
		}
	}
	p.mu.Unlock()
	var failed []error
	for _, source := range sources {
		failed = append(failed, i.addTo(ctx, source))
	}
	for _, conn := range connected {
		failed = append(failed, conn.index(ctx, []index{i}))
	}
	return errors.Join(failed...)
}

// known returns the indexes that a new connection gets.
func (p *Provider) known() []index {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.indexes
}

// index adds indexes to the cache of a cluster. It has to know the scope of each kind, and so may ask the server.
func (c *Connection) index(ctx context.Context, all []index) error {
	if c.kept {
		return nil // its source has them
	}
	for _, i := range all {
		if err := c.GetFieldIndexer().IndexField(ctx, i.object, i.field, i.extract); err != nil {
			return fmt.Errorf("indexing %T by %s: %w", i.object, i.field, err)
		}
	}
	return nil
}
