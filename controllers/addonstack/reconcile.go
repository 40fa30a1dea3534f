// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/clusters"
	"github.com/cluster-chandler/chandler/controllers/addonstack/following"
	"github.com/cluster-chandler/chandler/controllers/addonstack/history"
	"github.com/cluster-chandler/chandler/controllers/addonstack/pacing"
	"github.com/cluster-chandler/chandler/controllers/addonstack/report"
	"github.com/cluster-chandler/chandler/controllers/addonstack/sources"
	"github.com/cluster-chandler/chandler/controllers/addonstack/validity"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/internal/standing"
)

// Reconcile brings one AddonStack's revision and status up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req mcreconcile.Request) (ctrl.Result, error) {
	s := &addonsv1.AddonStack{}
	if err := r.Client.Get(ctx, req.NamespacedName, s); err != nil {
		if err = client.IgnoreNotFound(err); err == nil {
			r.Statuses.Forget(req.NamespacedName)
			r.memories.forget(req.NamespacedName)
			r.Turns.Give(req.NamespacedName, "", nil)
		}
		return ctrl.Result{}, err
	}
	if !s.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	if r.Statuses.Stale(s) {
		return ctrl.Result{RequeueAfter: retry.Cache}, nil
	}
	if slices.ContainsFunc(s.Spec.ClusterKinds, r.Members.IsUnsettled) {
		return ctrl.Result{RequeueAfter: retry.Moment}, nil // its clusters can't be counted yet
	}

	known := r.memories.of(s)
	if wait := known.counted.Wait(s, known.request.Generation != s.Generation, r.Clock.Now()); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}

	view := r.status().ViewOf(s)
	isNew, wait := known.request.Update(s, r.Clock.Now())
	if isNew {
		for _, ref := range sources.In(s) {
			r.Sources.Reconsider(ctx, ref)
		}
	}
	again, err := r.inspect(r.waiting(ctx, req.NamespacedName), view, known)
	if apierrors.IsConflict(err) {
		return management.Retry(ctx, ctrl.Result{}, err)
	}
	report.Summarize(view)
	if pause := r.Statuses.Pause(req.NamespacedName); pause > 0 && err == nil && pacing.IsProgress(&r.status().ViewOf(s).Status, &view.Status) {
		return ctrl.Result{RequeueAfter: retry.Sooner(retry.Sooner(again, wait), pause)}, nil
	}
	err = errors.Join(err, r.status().Write(ctx, s, view))
	return management.Retry(ctx, ctrl.Result{RequeueAfter: retry.Sooner(again, wait)}, err)
}

// inspect keeps the spec as a revision, and writes into the status what is to be seen. It
// returns when to look again, as for newer versions, 0 for never.
func (r *Reconciler) inspect(ctx context.Context, s *addonsv1.AddonStack, m *memory) (again time.Duration, err error) {
	s.Status.ObservedGeneration = s.Generation
	revisions, err := r.history().Known(ctx, s)
	if err != nil {
		return 0, err
	}
	f, kept, err := r.takeUp(ctx, s, m, revisions)
	if err != nil {
		return 0, err
	}
	var inForce *addonsv1.AddonStackSpec
	switch {
	case kept != nil:
		inForce, revisions = kept.Spec, kept.Revisions
	case len(revisions) > 0: // the previous one is
		if inForce, err = stack.SpecOf(&revisions[0]); err != nil {
			return 0, err
		}
		s.Status.LatestRevision = cmp.Or(s.Status.LatestRevision, revisions[0].Name) // that one may be gone, and an older one isn't in force for it
	}
	var selected []standing.Cluster
	if inForce != nil {
		if selected, again, err = r.bring(ctx, s, m, inForce, revisions); err != nil {
			return 0, err
		}
	}
	s.Status.Sources = sources.Of(s, inForce, selected, f)
	if f == nil {
		return again, nil
	}
	sources.Report(s, f, r.events())
	return retry.Sooner(again, f.Again), nil
}

// takeUp validates the spec, finds the versions that it follows and what its bundle adds, and keeps all that as a revision. It writes
// whether the spec is valid. It returns no resolution if the spec isn't taken up, as one that is invalid or paused, and nothing kept
// while the spec waits for its sources.
func (r *Reconciler) takeUp(ctx context.Context, s *addonsv1.AddonStack, m *memory, revisions []appsv1.ControllerRevision) (*following.Resolution, *history.Kept, error) {
	problems, paused := stack.Validate(&s.Spec), validity.SetPaused(s)
	switch {
	case len(problems) > 0:
		validity.ReportInvalid(s, problems[0].Reason, "Validate", validity.Describe(problems), r.events())
		return nil, nil, nil
	case paused:
		validity.SetValid(s, "")
		return nil, nil, nil
	}
	f, kept, err := r.keep(ctx, s, m, revisions)
	if newer, ok := errors.AsType[*failure.Error](err); ok && newer.Reason == addonsv1.UnknownFieldsReason {
		validity.ReportInvalid(s, addonsv1.UnknownFieldsReason, "Snapshot", newer.Error(), r.events())
		return nil, nil, nil
	}
	if err != nil {
		validity.ReportUnkept(s, err)
	}
	return f, kept, err
}

// keep keeps the spec, with the versions that it follows and what its bundle adds, as the newest revision. While the spec waits for
// versions or its bundle, it isn't kept.
func (r *Reconciler) keep(ctx context.Context, s *addonsv1.AddonStack, m *memory, revisions []appsv1.ControllerRevision) (*following.Resolution, *history.Kept, error) {
	f, err := r.finder().Follow(ctx, s, &m.poll, m.request.LookNow, revisions)
	if err != nil {
		return nil, nil, err
	}
	var e *following.Expansion
	if bundle := f.Of(addonsv1.FollowedSource); bundle == nil || !bundle.Waits() {
		if e, err = r.finder().Expand(ctx, s, f.Pins(), revisions); err != nil {
			failed, ok := errors.AsType[*failure.Error](err)
			if !ok {
				return nil, nil, err
			}
			f.Bundle, f.Again = failed, retry.Sooner(following.TriedAgainIn(failed), f.Again)
		}
	}
	if f.Waits() {
		validity.Report(s, e, f.Bundle, r.events())
		return f, nil, nil
	}
	kept, err := r.history().Keep(ctx, s, e.Of(s), f.Pins(), revisions)
	if err != nil {
		return nil, nil, err
	}
	validity.Report(s, e, nil, r.events())
	s.Status.Following = f.Status(s, kept.Pins, kept.Revisions[0].CreationTimestamp, kept.IsNew, r.Clock.Now())
	return f, kept, nil
}

// bring decides which clusters are to have which of the revisions, the newest first, and reports how far they are. It
// returns the clusters, and when to look again, 0 for never. Without a rollout, all are to have the spec in force.
func (r *Reconciler) bring(ctx context.Context, s *addonsv1.AddonStack, m *memory, inForce *addonsv1.AddonStackSpec, revisions []appsv1.ControllerRevision) ([]standing.Cluster, time.Duration, error) {
	if s.Spec.Rollout != nil && len(revisions) > 0 {
		selected, wanted, again, err := r.rollouts().Bring(ctx, s, &m.rollout, revisions)
		if err != nil {
			return nil, 0, err
		}
		again = retry.Sooner(again, r.count(s, selected, wanted))
		s.Status.Clusters.Updated = new(int32)
		for _, wave := range s.Status.Rollout.Waves {
			*s.Status.Clusters.Updated += wave.Updated
		}
		return selected.Clusters, again, nil
	}
	r.rollouts().End(s, &m.rollout)
	selected, err := clusters.Select(ctx, r.Client, r.Members, s.Namespace, inForce)
	if err != nil {
		return nil, 0, err
	}
	again := r.count(s, selected, func(ca *addonsv1.ClusterAddon) (string, []addonsv1.Addon) {
		if has := stack.AssignedRevision(ca.Spec.Stacks, s.Name); rollout.IsHeld(ca, s.Name) && has != "" {
			if spec := stack.SpecAt(revisions, has); spec != nil {
				return has, spec.Addons
			}
		}
		return s.Status.LatestRevision, inForce.Addons
	})
	if len(revisions) == 0 {
		return selected.Clusters, again, nil
	}
	later, err := r.rollouts().AtOnce(ctx, s, revisions, selected)
	return selected.Clusters, retry.Sooner(again, later), err
}

// count writes how far the stack's clusters are. It returns when to count again, 0 for never.
func (r *Reconciler) count(s *addonsv1.AddonStack, of *clusters.Selected, wanted clusters.Wanted) (again time.Duration) {
	c, again := clusters.Count(s, of, wanted, r.Clock.Now())
	if c.Reason == addonsv1.RemovalHeldReason && conditions.GetReason(s, c.Type) != c.Reason {
		r.events().Send(s, corev1.EventTypeWarning, c.Reason, "Assign", c.Message)
	}
	conditions.Set(s, c)
	return again
}

// waiting returns a context for calls that wait a moment for sources, in the share of the stack's
// namespace. An answer enqueues the stack.
func (r *Reconciler) waiting(ctx context.Context, key client.ObjectKey) context.Context {
	return r.Sources.Waiting(budget.WithTenant(ctx, budget.Tenant{Namespace: key.Namespace}), "AddonStack "+key.String(), func() { r.wake.Add(key) })
}
