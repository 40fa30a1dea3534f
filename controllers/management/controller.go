// SPDX-License-Identifier: Apache-2.0

// Package management builds controllers for objects of the management cluster. They don't watch
// workload clusters: a watch that can't start on one of these would stop the controller for all.
package management

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Failed reconciles are tried again after firstRetry, doubled each time up to
// lastRetry, so that one broken object can't keep a worker busy.
const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = 2 * time.Minute
)

// NewController starts building a controller.
func NewController(mgr ctrl.Manager, name string, workers int) *ctrl.Builder {
	return ctrl.NewControllerManagedBy(mgr).Named(name).WithOptions(controller.Options{
		MaxConcurrentReconciles: workers,
		CacheSyncTimeout:        5 * time.Minute,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstRetry, lastRetry),
	})
}

// SpecChanged passes what a change of status doesn't touch, and the start of a deletion.
func SpecChanged() builder.Predicates {
	return builder.WithPredicates(predicate.Or(
		predicate.GenerationChangedPredicate{},
		predicate.LabelChangedPredicate{},
		predicate.AnnotationChangedPredicate{},
	))
}

// Map enqueues the objects that fn names for an event's object.
func Map(fn func(ctx context.Context, obj client.Object) []client.ObjectKey) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []ctrl.Request {
		keys := fn(ctx, obj)
		requests := make([]ctrl.Request, 0, len(keys))
		for _, key := range keys {
			requests = append(requests, ctrl.Request{NamespacedName: key})
		}
		return requests
	})
}
