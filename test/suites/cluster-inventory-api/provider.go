// SPDX-License-Identifier: Apache-2.0

// Package clusterinventoryapi has what multicluster-runtime's tests of its provider of the Cluster Inventory API call.
package clusterinventoryapi

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/profiles"
	"github.com/cluster-chandler/chandler/fleet/secrets"
	"github.com/cluster-chandler/chandler/test/suites/cluster-inventory-api/kubeconfigstrategy"
)

// Options are those that the tests set.
type Options struct {
	KubeconfigStrategyOption kubeconfigstrategy.Option
	// IsReady isn't asked: the library connects to a cluster as soon as it has credentials.
	IsReady func(context.Context, *inventoryv1alpha1.ClusterProfile) bool
}

// Provider has the clusters of ClusterProfiles, or of the Secrets that their cluster manager made for a consumer.
type Provider struct{ *fleet.Provider }

// New returns a Provider.
func New(o Options) (*Provider, error) {
	source, err := sourceOf(o.KubeconfigStrategyOption)
	if err != nil {
		return nil, err
	}
	return &Provider{fleet.NewProvider(fleet.Options{Sources: []fleet.Source{source}, AllowLoopback: true})}, nil
}

func sourceOf(o kubeconfigstrategy.Option) (fleet.Source, error) {
	if o.Secret != nil {
		consumer := labels.Set{kubeconfigstrategy.SecretLabelKeyClusterInventoryConsumer: o.Secret.ConsumerName}
		return secrets.New(secrets.Options{Selector: labels.SelectorFromSet(consumer), Key: kubeconfigstrategy.SecretDataKeyKubeConfig}), nil
	}
	plugins, err := profiles.PluginsOf(o.CredentialsProvider.Provider)
	return profiles.New(profiles.Options{Plugins: plugins}), err
}

// SetupWithManager registers the Provider.
func (p *Provider) SetupWithManager(mgr mcmanager.Manager) error {
	return p.Provider.SetupWithManager(mgr.GetLocalManager())
}

// Get implements multicluster.Provider, also by the name of the profile alone. The Secret of one is called by it.
func (p *Provider) Get(ctx context.Context, name multicluster.ClusterName) (cluster.Cluster, error) {
	for _, known := range []multicluster.ClusterName{fleet.NameOf(profiles.Name, name), fleet.NameOf(secrets.Name, name+"-kubeconfig")} {
		if found, err := p.Provider.Get(ctx, known); err == nil {
			return found, nil
		}
	}
	return p.Provider.Get(ctx, name)
}
