// SPDX-License-Identifier: Apache-2.0

// Package providerinstance marks ProviderInstances whose process is gone. It runs beside the
// webhooks, in the deployment that all instances share.
package providerinstance

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"
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

// ExpiryReconciler sets the Ready condition of expired ProviderInstances to Unknown. The next
// heartbeat restores it. The object stays, as the only sign of a dead instance. Each replica runs
// it, without leader election, and judges by what it saw itself.
type ExpiryReconciler struct {
	Client    client.Client
	APIReader client.Reader // not a cache
	Observer  *arbiter.Observer
	Clock     clock.WithTicker
}

// Reconcile looks again when the instance expires, or marks it if it has.
func (r *ExpiryReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	cached := &addonsv1.ProviderInstance{}
	if err := r.Client.Get(ctx, req.NamespacedName, cached); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if left := r.Observer.Remaining(cached); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	if isMarked(cached) {
		return reconcile.Result{}, nil
	}
	// A watch that lags looks like silence: ask before saying that it is.
	pi, asOf := &addonsv1.ProviderInstance{}, r.Clock.Now()
	if err := r.APIReader.Get(ctx, req.NamespacedName, pi); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if left := r.Observer.Read(pi, asOf); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	return reconcile.Result{}, r.mark(ctx, pi)
}

// mark writes only over the version that expired, as a heartbeat may have been faster.
func (r *ExpiryReconciler) mark(ctx context.Context, pi *addonsv1.ProviderInstance) error {
	if isMarked(pi) {
		return nil
	}
	before := pi.DeepCopy()
	conditions.Set(pi, metav1.Condition{
		Type:               addonsv1.ReadyCondition,
		Status:             metav1.ConditionUnknown,
		Reason:             addonsv1.HeartbeatExpiredReason,
		Message:            expiredMessage(pi),
		ObservedGeneration: pi.Generation,
		LastTransitionTime: metav1.NewTime(r.Clock.Now().Truncate(time.Second)),
	})
	err := r.Client.Status().Patch(ctx, pi, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("marking ProviderInstance %s as expired: %w", client.ObjectKeyFromObject(pi), err)
	}
	return nil
}

func isMarked(pi *addonsv1.ProviderInstance) bool {
	return conditions.GetReason(pi, addonsv1.ReadyCondition) == addonsv1.HeartbeatExpiredReason
}

// expiredMessage returns what is known of an instance that is gone, and how to be rid of it.
func expiredMessage(pi *addonsv1.ProviderInstance) string {
	last := "No heartbeat at all"
	if at := pi.Status.HeartbeatTime; !at.IsZero() {
		last = "No heartbeat since " + at.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("%s (it expires after %d s): process %s ended without a word, or can't reach the API server. "+
		"Its scope is free. If it isn't to come back: kubectl delete providerinstance -n %s %s", last, pi.Spec.ExpirySeconds, pi.Spec.Holder, pi.Namespace, pi.Name)
}

// The permissions that it needs have no marker here, since instances must not have them: get, list
// and watch providerinstances, and patch providerinstances/status.

// SetupWithManager adds the controller to the manager. Its watch feeds the observer.
func (r *ExpiryReconciler) SetupWithManager(mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("providerinstance-expiry").
		WatchesRawSource(source.Kind(mgr.GetCache(), &addonsv1.ProviderInstance{}, feed(r.Observer))).
		WithOptions(controller.Options{NeedLeaderElection: ptr.To(false), NewQueue: newQueue(r.Clock)}).
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
