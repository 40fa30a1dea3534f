// SPDX-License-Identifier: Apache-2.0

// Package multi has what multicluster-runtime's tests of its provider of providers call.
package multi

import (
	"context"
	"maps"
	"slices"
	"sync"

	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/test/suites/internal/collected"
)

// Options have nothing that the tests set.
type Options struct{}

// Provider has the clusters of other providers, as these make them.
type Provider struct {
	*fleet.Provider
	manager *collected.Manager

	mu    sync.Mutex
	added map[string]multicluster.Provider
}

// New returns a Provider without others.
func New(Options) *Provider {
	return &Provider{
		Provider: fleet.NewProvider(fleet.Options{Identify: true}), manager: &collected.Manager{}, added: map[string]multicluster.Provider{},
	}
}

// AddProvider adds another provider, also while this one runs.
func (p *Provider) AddProvider(name string, other multicluster.Provider) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.AddSource(p.manager, fleet.FromClusters(name, other, nil)); err != nil {
		return err
	}
	p.added[name] = other
	return nil
}

// GetProvider returns a provider that was added.
func (p *Provider) GetProvider(name string) (multicluster.Provider, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	other, ok := p.added[name]
	return other, ok
}

// ProviderNames returns the names of those that were added.
func (p *Provider) ProviderNames() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.added))
}

// Start implements multicluster.ProviderRunnable.
func (p *Provider) Start(ctx context.Context, aware multicluster.Aware) error {
	go func() { _ = p.Provider.Start(ctx, aware) }()
	return p.manager.Run(ctx)
}
