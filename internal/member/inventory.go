// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"fmt"
	"time"

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
	cluster := &clusterv1.Cluster{}
	err := i.Client.Get(ctx, clusterAddon, cluster)
	if err == nil {
		return OfCluster(cluster), nil
	}
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading Cluster %s: %w", clusterAddon, err)
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
	cluster := &clusterv1.Cluster{}
	key := types.NamespacedName{Namespace: ca.Namespace, Name: ca.Spec.ClusterName}
	if err := i.Client.Get(ctx, key, cluster); err != nil {
		if err = client.IgnoreNotFound(err); err != nil {
			return nil, fmt.Errorf("reading Cluster %s: %w", key, err)
		}
		return nil, nil
	}
	return OfCluster(cluster), nil
}

// List returns all members of a namespace by the names of their ClusterAddons. Of two that would
// have the same name, the Cluster is in it.
func (i *Inventory) List(ctx context.Context, namespace string) (map[string]*Member, error) {
	all := map[string]*Member{}
	for _, name := range i.Fleet.Names() {
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

// SettleRetry is how often is looked whether a source has reported all there is, after a start.
const SettleRetry = time.Second

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
	for source, reference := range kinds {
		switch {
		case reference.Kind != kind || !i.Fleet.Has(source):
		case i.Fleet.Synced(source):
			return Gone
		default:
			return Unsettled
		}
	}
	return Foreign
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
	member := &Member{
		ClusterReference: reference, Namespace: namespace, Labels: m.Labels, Properties: m.Properties,
		Deleting: m.Deleting, Initialized: true, Owner: m.Owner,
	}
	if m.Owner != nil {
		member.UID = m.Owner.UID
	}
	return member
}
