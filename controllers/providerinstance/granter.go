// SPDX-License-Identifier: Apache-2.0

// Package providerinstance grants scopes to ProviderInstances, and takes them from those whose
// process is gone. It runs beside the webhooks, in the deployment that all instances share.
package providerinstance

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/instance/grant"
)

// Granter is the only writer of status.grant. Each replica runs it, without leader election: it relies
// on the API server alone, which stores a status only over the version that was evaluated.
type Granter struct {
	client.Client
	APIReader client.Reader // not a cache: no scope is given by what was once so
	Clock     clock.PassiveClock
	Memory    *grant.Memory
}

// Reconcile evaluates all instances at once, as they concern each other. If the cache shows something to do, it
// asks the API server. Whatever is written there comes back as an event.
func (g *Granter) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	changes, next, err := g.evaluate(ctx, g.Client, client.UnsafeDisableDeepCopy)
	if err == nil && len(changes) > 0 {
		changes, next, err = g.evaluate(ctx, g.APIReader)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	for _, c := range changes {
		err := g.Status().Patch(ctx, c.After, client.MergeFromWithOptions(c.Before, client.MergeFromWithOptimisticLock{}))
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return reconcile.Result{}, fmt.Errorf("writing the status of ProviderInstance %s: %w", client.ObjectKeyFromObject(c.After), err)
		}
	}
	return reconcile.Result{RequeueAfter: next}, nil
}

func (g *Granter) evaluate(ctx context.Context, from client.Reader, options ...client.ListOption) ([]grant.Change, time.Duration, error) {
	asOf, list := g.Clock.Now(), &addonsv1.ProviderInstanceList{}
	if err := from.List(ctx, list, options...); err != nil {
		return nil, 0, fmt.Errorf("listing ProviderInstances, to compare scopes: %w", err)
	}
	changes, next := g.Memory.Evaluate(list.Items, asOf)
	return changes, next, nil
}

// The permissions that it needs have no marker here, since instances must not have them: list and watch
// providerinstances, and patch providerinstances/status.

// SetupWithManager adds the controller to the manager.
func (g *Granter) SetupWithManager(mgr manager.Manager) error {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	all := handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, q queue) { q.Add(reconcile.Request{}) },
		UpdateFunc: func(_ context.Context, _ event.UpdateEvent, q queue) { q.Add(reconcile.Request{}) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			g.Memory.Vanish(e.Object.(*addonsv1.ProviderInstance))
			q.Add(reconcile.Request{})
		},
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("providerinstance").
		Watches(&addonsv1.ProviderInstance{}, all).
		WithOptions(controller.Options{NeedLeaderElection: ptr.To(false)}).
		Complete(g)
}
