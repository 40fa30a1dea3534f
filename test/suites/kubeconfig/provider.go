// SPDX-License-Identifier: Apache-2.0

// Package kubeconfig has what multicluster-runtime's tests of its provider of kubeconfig Secrets call.
package kubeconfig

import (
	"context"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/secrets"
)

// Options are those that the tests set.
type Options struct {
	Namespace, KubeconfigSecretLabel, KubeconfigSecretKey string
	ClusterOptions                                        []cluster.Option
	RESTOptions                                           []func(*rest.Config) error
}

// Provider has the clusters of Secrets. Names are those of the Secrets.
type Provider struct {
	*fleet.Provider
	options  Options
	direct   *direct
	clusters map[multicluster.ClusterName]activeCluster // that a test says there are
}

// activeCluster is a cluster that a test makes up.
type activeCluster struct {
	cluster.Cluster
	Cancel func()
}

// direct is a source of clusters that a test makes up.
type direct struct{ sink fleet.Sink }

func (*direct) Name() string { return "direct" }

func (d *direct) SetupWithManager(_ manager.Manager, sink fleet.Sink) error {
	d.sink = sink
	return nil
}

func (*direct) Refresh(multicluster.ClusterName) {}

// New returns a Provider.
func New(o Options) *Provider {
	config := &rest.Config{}
	for _, set := range o.RESTOptions {
		if err := set(config); err != nil {
			panic(err)
		}
	}
	p := &Provider{options: o, direct: &direct{}, clusters: map[multicluster.ClusterName]activeCluster{}}
	p.Provider = fleet.NewProvider(fleet.Options{
		Sources:       []fleet.Source{secrets.New(secrets.Options{Label: o.KubeconfigSecretLabel, Key: o.KubeconfigSecretKey})},
		AllowLoopback: true, Identify: true, QPS: config.QPS, Burst: config.Burst, Cluster: o.ClusterOptions,
	})
	if err := p.AddSource(nil, p.direct); err != nil {
		panic(err)
	}
	return p
}

// SetupWithManager registers the Provider.
func (p *Provider) SetupWithManager(_ context.Context, mgr mcmanager.Manager) error {
	return p.Provider.SetupWithManager(mgr.GetLocalManager())
}

// Get implements multicluster.Provider, also by the name of the Secret alone.
func (p *Provider) Get(ctx context.Context, name multicluster.ClusterName) (cluster.Cluster, error) {
	if found, err := p.Provider.Get(ctx, p.named(name)); err == nil {
		return found, nil
	}
	return p.Provider.Get(ctx, name)
}

// named returns the fleet's name of a Secret's cluster.
func (p *Provider) named(secret multicluster.ClusterName) multicluster.ClusterName {
	return fleet.NameOf(secrets.Name, multicluster.ClusterName(p.options.Namespace)+"/"+secret)
}

// ListClusters returns the clusters that are connected.
func (p *Provider) ListClusters() []multicluster.ClusterName {
	var connected []multicluster.ClusterName
	for _, name := range p.Names() {
		if _, ok := p.Connection(name); ok {
			connected = append(connected, name)
		}
	}
	return connected
}

// removeCluster has a cluster reported, and gone.
func (p *Provider) removeCluster(name multicluster.ClusterName) { //nolint:unused // the tests call it
	p.direct.sink.Set(name, fleet.Member{ID: "1", Origin: "test"})
	p.direct.sink.Remove(name)
}
