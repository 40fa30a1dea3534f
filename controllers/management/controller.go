// SPDX-License-Identifier: Apache-2.0

// Package management builds controllers on the multicluster manager whose requests are about objects
// of the management cluster. They don't watch workload clusters: a watch that can't start on one
// of these would stop the controller for all.
package management

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcbuilder "sigs.k8s.io/multicluster-runtime/pkg/builder"
	mchandler "sigs.k8s.io/multicluster-runtime/pkg/handler"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/cluster-chandler/chandler/internal/retry"
)

// NewController starts building a controller. The manager's defaults don't reach multicluster
// controllers (multicluster-runtime issue 163), so everything is set here.
func NewController(mgr mcmanager.Manager, name, kind string, workers int) *mcbuilder.Builder {
	log := mgr.GetLocalManager().GetLogger().WithValues("controller", name)
	return mcbuilder.ControllerManagedBy(mgr).
		Named(name).
		WithClusterNotFoundWrapper(false).
		WithOptions(controller.TypedOptions[mcreconcile.Request]{
			LogConstructor: func(req *mcreconcile.Request) logr.Logger {
				if req == nil {
					return log
				}
				return log.WithValues(kind, klog.KRef(req.Namespace, req.Name))
			},
			MaxConcurrentReconciles: workers,
			RecoverPanic:            ptr.To(true),
			UsePriorityQueue:        ptr.To(true),
			CacheSyncTimeout:        5 * time.Minute,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[mcreconcile.Request](
				retry.Reconcile.First, retry.Reconcile.Longest),
		})
}

// WatchManagementCluster has a For, Owns or Watches look at the management cluster.
func WatchManagementCluster() mcbuilder.EngageOptions {
	return mcbuilder.WithEngageWithLocalCluster(true)
}

// SkipWorkloadClusters has it look at none of the provider's clusters. A watch takes both options.
func SkipWorkloadClusters() mcbuilder.EngageOptions {
	return mcbuilder.WithEngageWithProviderClusters(false)
}

// SpecChanged passes what a change of status doesn't touch, and the start of a deletion; and what others pass.
func SpecChanged(others ...predicate.Predicate) mcbuilder.Predicates {
	return mcbuilder.WithPredicates(predicate.Or(append(others,
		predicate.GenerationChangedPredicate{},
		predicate.LabelChangedPredicate{},
		predicate.AnnotationChangedPredicate{},
	)...))
}

// Updated passes a change of an object for which a function returns true.
func Updated[T client.Object](passes func(before, after T) bool) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, isOne := e.ObjectOld.(T)
		after, isOther := e.ObjectNew.(T)
		return isOne && isOther && passes(before, after)
	}}
}

// Map enqueues the objects that fn names for an event's object.
func Map(fn func(ctx context.Context, obj client.Object) []client.ObjectKey) mchandler.EventHandlerFunc {
	return func(multicluster.ClusterName, cluster.Cluster) mchandler.EventHandler {
		return handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []mcreconcile.Request {
			keys := fn(ctx, obj)
			requests := make([]mcreconcile.Request, 0, len(keys))
			for _, key := range keys {
				requests = append(requests, Request(key))
			}
			return requests
		})
	}
}

// SameName maps an object to the one of the controller that has its name.
func SameName(_ context.Context, obj client.Object) []client.ObjectKey {
	return []client.ObjectKey{client.ObjectKeyFromObject(obj)}
}

// Request returns the request for an object of the management cluster.
func Request(key client.ObjectKey) mcreconcile.Request {
	return mcreconcile.Request{Request: reconcile.Request{NamespacedName: key}}
}
