// SPDX-License-Identifier: Apache-2.0

package assigner

import (
	"context"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// AddCaches has a cache keep no more of Clusters than is needed, and those of the namespaces only, in place of what it was to keep.
func (o Options) AddCaches(byObject map[client.Object]cache.ByObject) {
	if len(o.Namespaces) == 0 {
		return
	}
	clusters := cache.ByObject{Namespaces: map[string]cache.Config{}, Transform: trim}
	for _, namespace := range o.Namespaces {
		clusters.Namespaces[namespace] = cache.Config{}
	}
	maps.DeleteFunc(byObject, func(of client.Object, _ cache.ByObject) bool { // else either of two may count
		_, is := of.(*clusterv1.Cluster)
		return is
	})
	byObject[&clusterv1.Cluster{}] = clusters
}

// trim drops all metadata but what is decided by.
func trim(in any) (any, error) {
	if is, ok := in.(*metav1.PartialObjectMetadata); ok {
		kept := metav1.ObjectMeta{
			Namespace: is.Namespace, Name: is.Name, UID: is.UID, ResourceVersion: is.ResourceVersion, DeletionTimestamp: is.DeletionTimestamp,
			Labels: map[string]string{}, Annotations: map[string]string{},
		}
		for _, key := range []string{addonsv1.AssignedFilterAnnotation, addonsv1.MovedAtAnnotation} {
			if value, has := is.Annotations[key]; has {
				kept.Annotations[key] = value
			}
		}
		if value, has := is.Labels[clusterv1.WatchLabel]; has {
			kept.Labels[clusterv1.WatchLabel] = value
		}
		is.ObjectMeta = kept
	}
	return in, nil
}

// SetupWithManager adds the controller to the manager, if there is a namespace to assign Clusters in.
func (a *Assigner) SetupWithManager(mgr manager.Manager) error {
	if len(a.Namespaces) == 0 {
		return nil
	}
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{{}} })
	relabelled := builder.WithPredicates(predicate.Or[client.Object](predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{}))
	return ctrl.NewControllerManagedBy(mgr).
		Named("assigner").
		WatchesMetadata(&clusterv1.Cluster{}, all, relabelled).
		Watches(&addonsv1.ProviderInstance{}, all).
		Complete(a)
}
