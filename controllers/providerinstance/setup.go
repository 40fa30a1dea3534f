// SPDX-License-Identifier: Apache-2.0

package providerinstance

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/instance/arbiter"
)

// What it needs is no marker here, since instances must not have it: get, list
// and watch providerinstances, and patch providerinstances/status.

const controllerName = "providerinstance-expiry"

// Failed writes are tried again after firstRetry, doubled each time up to lastRetry.
const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = 2 * time.Minute
)

// SetupWithManager adds the controller to the manager, and lets its watch feed
// the observer.
func (r *ExpiryReconciler) SetupWithManager(mgr manager.Manager) error {
	log := mgr.GetLogger().WithValues("controller", controllerName)
	return ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		WatchesRawSource(source.Kind(mgr.GetCache(), &addonsv1.ProviderInstance{}, feed(r.Observer))).
		WithOptions(controller.Options{
			NeedLeaderElection: ptr.To(false),
			CacheSyncTimeout:   5 * time.Minute,
			RateLimiter:        workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
			NewQueue:           newQueue(r.Clock),
			LogConstructor: func(req *reconcile.Request) logr.Logger {
				if req == nil {
					return log
				}
				return log.WithValues("ProviderInstance", klog.KRef(req.Namespace, req.Name))
			},
		}).
		Complete(r)
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// feed hands each event to the observer before it becomes a request.
func feed(o *arbiter.Observer) handler.TypedEventHandler[*addonsv1.ProviderInstance, reconcile.Request] {
	add := func(q queue, pi *addonsv1.ProviderInstance) {
		q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pi)})
	}
	return handler.TypedFuncs[*addonsv1.ProviderInstance, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*addonsv1.ProviderInstance], q queue) {
			o.Noticed(e.Object)
			add(q, e.Object)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*addonsv1.ProviderInstance], q queue) {
			o.Noticed(e.ObjectNew)
			add(q, e.ObjectNew)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*addonsv1.ProviderInstance], _ queue) {
			o.Vanished(e.Object)
		},
	}
}

// newQueue makes a queue that waits by the given clock.
func newQueue(c clock.WithTicker) func(string, workqueue.TypedRateLimiter[reconcile.Request]) queue {
	return func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) queue {
		return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: name, Clock: c})
	}
}
