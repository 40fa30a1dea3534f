// SPDX-License-Identifier: Apache-2.0

// Package addonplan reconciles AddonPlans: it asks the clusters of a stack what a change would do to them, and writes it into the
// status of the plan. It writes nothing else, but for deleting plans that are old.
package addonplan

import (
	"context"
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/plan"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// Reconciler reconciles AddonPlans.
type Reconciler struct {
	Client   client.Client
	Recorder events.EventRecorder
	Members  *member.Inventory
	// Clusters are asked what becomes of them.
	Clusters plan.Previewer
	// Foresee returns the revision that an edited stack would have, which is also given as the API server would serve it, nil if it is
	// as it is written. While a source is asked, its error says to wait, and wake is called later.
	Foresee func(ctx context.Context, edited *addonsv1.AddonStack, served *unstructured.Unstructured, revisions []appsv1.ControllerRevision, wake func()) (*appsv1.ControllerRevision, error)
	// Removals returns how many clusters lose add-ons of a stack by a revision, nil for none.
	Removals func(ctx context.Context, of client.ObjectKey, revision string, spec *addonsv1.AddonStackSpec) (*addonsv1.PlanRemovals, error)
	// IsBusy reports whether there is other work, which comes first.
	IsBusy func() bool
	// WatchFilter of this instance, "" if it has none.
	WatchFilter string
	Clock       clock.Clock
	// Statuses write to the Client.
	Statuses management.Statuses
	// Running counts the plans that are worked on.
	Running *budget.Budget

	wake management.Queue // for answers of sources
}

// Running are how many plans are worked on at once, and how many of a namespace.
var Running = budget.Limits{All: 10, Namespace: 5}

// Reconcile brings one AddonPlan to its end, or deletes it when it is old. A plan whose process ended begins again.
func (r *Reconciler) Reconcile(ctx context.Context, req mcreconcile.Request) (ctrl.Result, error) {
	p := &addonsv1.AddonPlan{}
	if err := r.Client.Get(ctx, req.NamespacedName, p); err != nil {
		if err = client.IgnoreNotFound(err); err == nil {
			r.Statuses.Forget(req.NamespacedName)
		}
		return ctrl.Result{}, err
	}
	switch {
	case !p.DeletionTimestamp.IsZero():
		return ctrl.Result{}, nil
	case r.Statuses.Stale(p):
		return ctrl.Result{RequeueAfter: retry.Cache}, nil
	case p.IsFinished():
		return r.finished(ctx, p)
	}
	result, err := r.bring(ctx, p)
	return management.Retry(ctx, result, err)
}

// bring takes a plan as far as it can go: it gathers what the change is, asks the clusters, and reports.
func (r *Reconciler) bring(ctx context.Context, p *addonsv1.AddonPlan) (ctrl.Result, error) {
	slot := r.Running.Claim(budget.Tenant{Namespace: p.Namespace}, 1)
	defer slot.End()
	if !slot.Try(1) {
		others := waits("other plans of the namespace come first")
		others.RetryAfter = retry.Room
		return r.stop(ctx, p, others)
	}
	is, sum := p.DeepCopy(), (*plan.Sum)(nil)
	of, err := r.gather(ctx, is)
	if err == nil {
		begin(is, of)
		err = r.Statuses.Patch(ctx, p, is)
	}
	if err == nil {
		sum, err = r.ask(ctx, is, of)
	}
	if failed, ok := errors.AsType[*failure.Error](err); ok {
		return r.stop(ctx, is, failed)
	}
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err) // the plan is gone, or else the stack, of which an event tells
	}
	return r.complete(ctx, is, of, sum)
}

// finished deletes a plan that is old, and notes on others whether they are of the present.
func (r *Reconciler) finished(ctx context.Context, p *addonsv1.AddonPlan) (ctrl.Result, error) {
	left := r.left(p)
	if left <= 0 {
		return ctrl.Result{}, client.IgnoreNotFound(r.Client.Delete(ctx, p, client.Preconditions{UID: &p.UID}))
	}
	result := ctrl.Result{RequeueAfter: left}
	if p.Status.Phase == addonsv1.PlanFailed {
		return result, nil
	}
	of, err := r.gather(ctx, p)
	failed, ok := errors.AsType[*failure.Error](err)
	switch {
	case ok && failed.Passes():
		return ctrl.Result{RequeueAfter: min(left, retry.Answer)}, nil
	case ok:
		of = &subject{}
	case err != nil:
		return ctrl.Result{}, err
	}
	is := p.DeepCopy()
	r.setStale(is, of)
	return management.Retry(ctx, result, r.Statuses.Patch(ctx, p, is))
}

// left returns how long a finished plan is still to be kept, and another one may still wait.
func (r *Reconciler) left(p *addonsv1.AddonPlan) time.Duration {
	since, ttl := p.Status.Finished, ptr.Deref(p.Spec.TTLSecondsAfterFinished, addonsv1.DefaultPlanTTLSeconds)
	if since.IsZero() {
		since = p.CreationTimestamp
	}
	return since.Add(time.Duration(ttl) * time.Second).Sub(r.Clock.Now())
}

// now returns the time as the API keeps it.
func (r *Reconciler) now() metav1.Time { return metav1.NewTime(r.Clock.Now()).Rfc3339Copy() }
