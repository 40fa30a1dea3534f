// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// FromClusters returns a source of the clusters of any multicluster-runtime provider, as that provider made them: with
// their caches, clients and meaning. It is for providers whose clusters share a server or a cache. The Provider adds the
// State of each cluster, by a probe with its rest.Config, and Subscribe. A cluster is engaged once it has answered.
//
// There is no [Connection], so our limits and the cache for which only its readers wait aren't there either.
// Indexes are the other provider's. Two of its clusters may be one server: they aren't looked at for duplicates.
//
// Setup is as for [From].
func FromClusters(name string, provider multicluster.Provider, setup func(mcmanager.Manager) error) Source {
	return keeping{&provided{name: name, provider: provider, setup: setup, keeps: true, rounds: map[multicluster.ClusterName]int{}}}
}

// keeping is the source that FromClusters returns.
type keeping struct{ *provided }

// IndexField implements client.FieldIndexer, for all clusters of the provider.
func (k keeping) IndexField(ctx context.Context, object client.Object, field string, extract client.IndexerFunc) error {
	return k.provider.IndexField(ctx, object, field, extract)
}
