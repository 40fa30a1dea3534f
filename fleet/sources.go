// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// SetupWithManager registers the sources with the manager of the cluster that the program runs
// for. Call it before that manager starts. A multicluster manager starts the Provider itself.
func (p *Provider) SetupWithManager(mgr manager.Manager) error {
	for place, source := range p.options.Sources {
		if isNamed(p.options.Sources[:place], source.Name()) {
			return errTwice(source)
		}
	}
	for place, source := range p.options.Sources {
		if err := p.register(mgr, source, place); err != nil {
			return err
		}
	}
	return nil
}

// isNamed reports whether one of the sources has a name.
func isNamed(sources []Source, name string) bool {
	return slices.ContainsFunc(sources, func(s Source) bool { return s.Name() == name })
}

func errTwice(source Source) error {
	return fmt.Errorf("two sources have the name %q: set Name in the options of one", source.Name())
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
	if isNamed(p.sources, source.Name()) {
		p.mu.Unlock()
		return errTwice(source)
	}
	p.sources = append(p.sources, source)
	indexes := p.indexes
	p.mu.Unlock()
	for _, add := range indexes {
		if err := indexSource(context.Background(), source, add); err != nil {
			return err
		}
	}
	if err := source.SetupWithManager(mgr, Sink{receiver{p.take, p.withdraw, p.complete}, source, place}); err != nil {
		return fmt.Errorf("setting up the source %q: %w", source.Name(), err)
	}
	return nil
}

// index adds an index that all clusters have, those of now and those that come.
type index func(context.Context, client.FieldIndexer) error

// indexSource adds an index to all clusters of a source that has indexes of its own.
func indexSource(ctx context.Context, source Source, add index) error {
	indexer, ok := source.(client.FieldIndexer)
	if !ok {
		return nil
	}
	if err := add(ctx, indexer); err != nil {
		return fmt.Errorf("the clusters of source %q: %w", source.Name(), err)
	}
	return nil
}

// IndexField implements multicluster.Provider. Like that of a controller-runtime cache, it is
// meant to be called before an informer for the kind runs: set indexes up before the manager starts.
func (p *Provider) IndexField(ctx context.Context, object client.Object, field string, extract client.IndexerFunc) error {
	add := func(ctx context.Context, to client.FieldIndexer) error {
		if err := to.IndexField(ctx, object, field, extract); err != nil {
			return fmt.Errorf("indexing %T by %s: %w", object, field, err)
		}
		return nil
	}
	p.mu.Lock()
	p.indexes = append(p.indexes, add)
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
		failed = append(failed, indexSource(ctx, source, add))
	}
	for _, conn := range connected {
		failed = append(failed, conn.index(ctx, add))
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
func (c *Connection) index(ctx context.Context, all ...index) error {
	if c.kept {
		return nil // its source has them
	}
	for _, add := range all {
		if err := add(ctx, c.GetFieldIndexer()); err != nil {
			return err
		}
	}
	return nil
}
