// SPDX-License-Identifier: Apache-2.0

package assigner

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/assigner/place"
	"github.com/cluster-chandler/chandler/internal/upgrade"
)

// world is all that a decision is made by.
type world struct {
	clusters  []place.Cluster
	instances []place.Instance
	at        map[client.ObjectKey]int    // of the Clusters
	versions  map[client.ObjectKey]string // their resourceVersions
	moves     int                         // that are left in this hour
}

func (w *world) next() []place.Label { return place.Next(w.clusters, w.instances, w.moves) }

// gather reads the instances and the metadata of the Clusters.
func (a *Assigner) gather(ctx context.Context, from client.Reader, options ...client.ListOption) (*world, error) {
	w := &world{at: map[client.ObjectKey]int{}, versions: map[client.ObjectKey]string{}, moves: a.MovesPerHour}
	instances := &addonsv1.ProviderInstanceList{}
	if err := from.List(ctx, instances, options...); err != nil {
		return nil, fmt.Errorf("listing ProviderInstances: %w", err)
	}
	for i := range instances.Items {
		pi := &instances.Items[i]
		drain := ptr.Deref(pi.Spec.Drain, false)
		// One that is silent keeps its Clusters for when it is back, unless it is to end.
		if drain || pi.HoldsScope() && conditions.IsTrue(pi, addonsv1.ReadyCondition) {
			w.instances = append(w.instances, place.Instance{Filter: pi.Spec.WatchFilter, Namespaces: pi.Spec.Namespaces, Drain: drain})
		}
	}
	for _, namespace := range a.Namespaces {
		clusters := &metav1.PartialObjectMetadataList{}
		clusters.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("ClusterList"))
		if err := from.List(ctx, clusters, append(options, client.InNamespace(namespace))...); err != nil {
			return nil, fmt.Errorf("listing Clusters of namespace %s: %w", namespace, err)
		}
		for i := range clusters.Items {
			w.add(&clusters.Items[i], a.Clock.Now())
		}
	}
	return w, nil
}

// add adds a Cluster, and counts it if it moved within an hour.
func (w *world) add(cluster *metav1.PartialObjectMetadata, now time.Time) {
	filter, key := cluster.Labels[clusterv1.WatchLabel], client.ObjectKeyFromObject(cluster)
	w.at[key], w.versions[key] = len(w.clusters), cluster.ResourceVersion
	w.clusters = append(w.clusters, place.Cluster{
		Namespace: cluster.Namespace, Name: cluster.Name, Filter: filter,
		Assigned: filter != "" && cluster.Annotations[addonsv1.AssignedFilterAnnotation] == filter,
		Busy:     !cluster.DeletionTimestamp.IsZero(),
	})
	if at, err := time.Parse(time.RFC3339, cluster.Annotations[addonsv1.MovedAtAnnotation]); err == nil && now.Sub(at) < time.Hour {
		w.moves--
	}
}

// isBusy reports whether a Cluster is paused, being deleted, or upgraded, or whether its add-ons are being changed.
func (a *Assigner) isBusy(ctx context.Context, key client.ObjectKey) (bool, error) {
	cluster, ca := &clusterv1.Cluster{}, &addonsv1.ClusterAddon{}
	if err := a.APIReader.Get(ctx, key, cluster); apierrors.IsNotFound(err) {
		return true, nil
	} else if err != nil {
		return false, fmt.Errorf("reading Cluster %s: %w", key, err)
	}
	if !cluster.DeletionTimestamp.IsZero() || annotations.IsPaused(cluster, cluster) ||
		conditions.IsTrue(cluster, clusterv1.ClusterRollingOutCondition) || upgrade.Observe(upgrade.ClusterOf(cluster, ""), nil) != nil {
		return true, nil
	}
	if err := a.APIReader.Get(ctx, key, ca); apierrors.IsNotFound(err) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("reading ClusterAddon %s: %w", key, err)
	}
	isChanging := ca.Status.ObservedGeneration < ca.Generation || conditions.GetReason(ca, addonsv1.AddonsReadyCondition) == addonsv1.AddonsProgressingReason
	return isChanging && conditions.IsTrue(ca, addonsv1.ClusterReachableCondition), nil // else it may stay so for ever
}
