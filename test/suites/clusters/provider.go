// SPDX-License-Identifier: Apache-2.0

// Package clusters has what multicluster-runtime's tests of its provider of clusters call.
package clusters

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/fleet"
)

// Provider has the clusters that a program made.
type Provider struct {
	*fleet.Provider
	given *given
}

// given is a source that is told of clusters.
type given struct{ sink fleet.Sink }

func (*given) Name() string { return "" }

func (g *given) SetupWithManager(_ manager.Manager, sink fleet.Sink) error {
	g.sink = sink
	return nil
}

func (*given) Refresh(multicluster.ClusterName) {}

// New returns a Provider without clusters.
func New() *Provider {
	g := &given{}
	p := fleet.NewProvider(fleet.Options{Sources: []fleet.Source{g}})
	if err := p.SetupWithManager(nil); err != nil {
		panic(err)
	}
	return &Provider{Provider: p, given: g}
}

// Add adds a cluster.
func (p *Provider) Add(_ context.Context, name multicluster.ClusterName, of cluster.Cluster) error {
	p.given.sink.Set(name, fleet.Member{Config: of.GetConfig(), Cluster: of, Origin: "test"})
	return nil
}

// Remove removes a cluster.
func (p *Provider) Remove(name multicluster.ClusterName) { p.given.sink.Remove(name) }

// ClusterNames returns the clusters that there are.
func (p *Provider) ClusterNames() []multicluster.ClusterName { return p.Names() }
