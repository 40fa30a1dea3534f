// SPDX-License-Identifier: Apache-2.0

// Package file has what multicluster-runtime's tests of its provider of kubeconfig files call.
package file

import (
	"context"
	"slices"
	"strings"

	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/files"
	"github.com/cluster-chandler/chandler/test/suites/internal/collected"
)

// Options are those that the tests set.
type Options struct{ KubeconfigFiles, KubeconfigDirs []string }

// Provider has the contexts of kubeconfig files.
type Provider struct {
	*fleet.Provider
	manager *collected.Manager
}

// New returns a Provider.
func New(o Options) (*Provider, error) {
	source, err := files.New(files.Options{Paths: slices.Concat(o.KubeconfigFiles, o.KubeconfigDirs)})
	if err != nil {
		return nil, err
	}
	p := &Provider{manager: &collected.Manager{}, Provider: fleet.NewProvider(fleet.Options{Sources: []fleet.Source{source}})}
	return p, p.SetupWithManager(p.manager)
}

// Start implements multicluster.ProviderRunnable.
func (p *Provider) Start(ctx context.Context, aware multicluster.Aware) error {
	go func() { _ = p.Provider.Start(ctx, aware) }()
	return p.manager.Run(ctx)
}

// ClusterNames returns the clusters as the other provider calls them: by the file and the context.
func (p *Provider) ClusterNames() []multicluster.ClusterName {
	var names []multicluster.ClusterName
	for _, name := range p.Names() {
		if of, ok := p.Describe(name); ok { // its Origin is "context <context> of <file>"
			context, file, _ := strings.Cut(strings.TrimPrefix(of.Origin, "context "), " of ")
			names = append(names, multicluster.ClusterName(file+"+"+context))
		}
	}
	return names
}
