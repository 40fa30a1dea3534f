// SPDX-License-Identifier: Apache-2.0

// Package capi finds the Clusters of Cluster API. It holds to Cluster API's contract, and needs none of its Go types.
package capi

import (
	"cmp"
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/internal/objects"
)

const (
	// watchLabel is what Cluster API's managers filter by.
	watchLabel = "cluster.x-k8s.io/watch-filter"
	// The kubeconfig of a Cluster is in the Secret <name>-kubeconfig, under the key value.
	kubeconfigSuffix, kubeconfigKey = "-kubeconfig", "value"
)

// Options of a source. Each may be left out.
type Options struct {
	// Name of the source. Defaults to "": Clusters keep their own names. With one they are "name#namespace/name", as those of
	// other sources.
	Name string
	// WatchFilter restricts the source to Clusters whose label cluster.x-k8s.io/watch-filter has
	// this value. Empty means all.
	WatchFilter string
	// Cluster is the type by which Clusters are read. Give the one that the program's manager
	// caches already, and its informer is shared. Defaults to the metadata of v1beta2.
	Cluster client.Object
	// List is the list type that belongs to Cluster. If Cluster is set and it isn't, the source never calls Synced, and
	// duplicates aren't found.
	List client.ObjectList
	// AllowDuplicates has several Clusters that lead to one cluster connected. Otherwise the oldest alone is, by its
	// creationTimestamp and then its name; see fleet.Options.Identify.
	AllowDuplicates bool
}

// New returns a source of Cluster API's Clusters under the name
// "namespace/name", with the kubeconfig of the Secret "<name>-kubeconfig".
// Without Options.Name, Clusters keep their own names.
//
// Clusters come from the cache of the local manager, so its restrictions hold.
// Secrets are watched there by their metadata only, and a changed Secret is read from the API
// server. A Cluster that is being deleted stays reported until it is gone: something may still have
// to be cleaned up in it. A Cluster that leaves the watch filter is removed at once.
func New(o Options) fleet.Source {
	if o.Cluster == nil {
		o.Cluster = &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Cluster"}}
		o.List = &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "ClusterList"}}
	}
	return &objects.Source{
		SourceName: o.Name, Controller: "fleet-" + cmp.Or(o.Name, "clusters"), Object: o.Cluster, List: o.List, Recheck: true,
		Member: func(ctx context.Context, cluster client.Object, secrets *objects.Reader) (fleet.Member, error) {
			key := client.ObjectKeyFromObject(cluster)
			secret := client.ObjectKey{Namespace: key.Namespace, Name: key.Name + kubeconfigSuffix}
			m, err := secrets.Member(ctx, key, secret, kubeconfigKey)
			if o.List != nil && !o.AllowDuplicates {
				m.Created = cluster.GetCreationTimestamp().Time
			}
			return m, err
		},
		InScope: func(labels map[string]string) bool {
			return o.WatchFilter == "" || labels[watchLabel] == o.WatchFilter
		},
	}
}
