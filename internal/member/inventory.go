// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet"
)

// Inventory finds members. Clusters are read from the management cluster's cache, so that what is
// decided of them doesn't depend on the fleet; all others are what the fleet's sources report.
type Inventory struct {
	Client client.Reader
	Fleet  *fleet.Provider
	Names  Names
}

// Get returns the member that a ClusterAddon's name stands for, nil if there is none in the scope
// of this instance.
func (i *Inventory) Get(ctx context.Context, clusterAddon types.NamespacedName) (*Member, error) {
	member, err := i.cluster(ctx, clusterAddon)
	if member != nil || err != nil {
		return member, err
	}
	if name, ok := i.Names.other(clusterAddon); ok {
		return i.of(name), nil
	}
	return nil, nil
}

// Of returns the member that a ClusterAddon is for, nil if there is none in the scope of this instance.
func (i *Inventory) Of(ctx context.Context, ca *addonsv1.ClusterAddon) (*Member, error) {
	if ca.Spec.ClusterRef != nil {
		return i.of(i.Names.Fleet(ca)), nil
	}
	return i.cluster(ctx, types.NamespacedName{Namespace: ca.Namespace, Name: ca.Spec.ClusterName})
}

// cluster returns the member that a Cluster is, nil if there is none.
func (i *Inventory) cluster(ctx context.Context, key types.NamespacedName) (*Member, error) {
	cluster := &clusterv1.Cluster{}
	if err := i.Client.Get(ctx, key, cluster); err != nil {
		if err = client.IgnoreNotFound(err); err != nil {
			return nil, fmt.Errorf("reading Cluster %s: %w", key, err)
		}
		return nil, nil
	}
	return OfCluster(cluster), nil
}

// List returns all members of a namespace by the names of their ClusterAddons. If two members would
// have the same name, the Cluster is in it.
func (i *Inventory) List(ctx context.Context, namespace string) (map[string]*Member, error) {
	all := map[string]*Member{}
	for _, name := range i.Fleet.Names() {
		if isCluster(name) {
			continue
		}
		key, ok := i.Names.ClusterAddon(name)
		if !ok || key.Namespace != namespace {
			continue
		}
		if m := i.of(name); m != nil {
			all[key.Name] = m
		}
	}
	clusters := &clusterv1.ClusterList{}
	if err := i.Client.List(ctx, clusters, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing Clusters of namespace %s: %w", namespace, err)
	}
	for c := range clusters.Items {
		all[clusters.Items[c].Name] = OfCluster(&clusters.Items[c])
	}
	return all, nil
}

// Subscribe calls fn with the name of the ClusterAddon of each member that changes, but for
// Clusters, which controllers watch. fn must not block.
func (i *Inventory) Subscribe(fn func(clusterAddon types.NamespacedName)) {
	i.Fleet.Subscribe(func(name multicluster.ClusterName) {
		if key, ok := i.Names.ClusterAddon(name); ok && !isCluster(name) {
			fn(key)
		}
	})
}

// Knowledge says what it means that a member isn't in the Inventory.
type Knowledge int

const (
	// Foreign means that this instance has no source of its kind.
	Foreign Knowledge = iota
	// Unsettled means that the source hasn't reported all there is, as after a start.
	Unsettled
	// Gone means that the source would have reported it.
	Gone
)

// Absence returns what it means that a member of a kind isn't in the Inventory.
func (i *Inventory) Absence(kind string) Knowledge {
	source, ok := sourceOf(kind)
	switch {
	case !ok || !i.Fleet.Has(source):
		return Foreign
	case i.Fleet.Synced(source):
		return Gone
	}
	return Unsettled
}

// IsUnsettled reports whether the source of a kind hasn't reported all there is, as after a start.
func (i *Inventory) IsUnsettled(kind string) bool { return i.Absence(kind) == Unsettled }

// of returns a member that isn't a Cluster, nil if the fleet doesn't know it (any more).
func (i *Inventory) of(name multicluster.ClusterName) *Member {
	namespace, reference, ok := i.Names.reference(name)
	if !ok || reference.Kind == addonsv1.KindCluster {
		return nil
	}
	m, ok := i.Fleet.Describe(name)
	if !ok {
		return nil
	}
	return &Member{
		ClusterReference: reference, Namespace: namespace, Labels: m.Labels, Properties: m.Properties,
		Deleting: m.Deleting, Initialized: true, Owner: m.Owner,
	}
}
