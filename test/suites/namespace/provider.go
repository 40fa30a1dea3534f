// SPDX-License-Identifier: Apache-2.0

// Package namespace has what multicluster-runtime's tests of its provider of namespaces call.
package namespace

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	"sigs.k8s.io/multicluster-runtime/providers/namespace"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/test/suites/internal/collected"
)

// Provider has the namespaces of a cluster, as that provider makes them.
type Provider struct {
	*fleet.Provider
	manager *collected.Manager
}

// New returns a Provider.
func New(of cluster.Cluster) *Provider {
	p := &Provider{manager: &collected.Manager{}, Provider: fleet.NewProvider(fleet.Options{
		Sources: []fleet.Source{fleet.FromClusters("", namespace.New(of), nil)},
	})}
	if err := p.SetupWithManager(p.manager); err != nil {
		panic(err)
	}
	return p
}

// Start implements multicluster.ProviderRunnable.
func (p *Provider) Start(ctx context.Context, aware multicluster.Aware) error {
	go func() { _ = p.Provider.Start(ctx, aware) }()
	return p.manager.Run(ctx)
}
