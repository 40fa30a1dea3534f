// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
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
			r.statuses.Forget(req.NamespacedName)
			r.memories.Delete(req.NamespacedName)
			r.Turns.Give(req.NamespacedName, "", nil)
		}
		return ctrl.Result{}, err
	}
	if !s.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	if r.statuses.Stale(s) {
		return ctrl.Result{RequeueAfter: retry.Cache}, nil
	}
	if slices.ContainsFunc(s.Spec.ClusterKinds, r.Members.IsUnsettled) {
		return ctrl.Result{RequeueAfter: retry.Moment}, nil // its clusters can't be counted yet
	}

	known := r.memoryOf(s)
	if wait := known.pace(s, r.Clock.Now()); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}

	view := sharedStatus{r}.viewOf(s)
	isNew, wait := known.request.update(s, r.Clock.Now())
	if isNew {
		for _, ref := range sourcesIn(s) {
			r.Sources.Reconsider(ctx, ref)
		}
	}
	again, err := r.inspect(r.waiting(ctx, req.NamespacedName), view)
	if apierrors.IsConflict(err) {
		return management.Retry(ctx, ctrl.Result{}, err)
	}
	summarize(view)
	err = errors.Join(err, sharedStatus{r}.write(ctx, s, view))
	return management.Retry(ctx, ctrl.Result{RequeueAfter: retry.Sooner(again, wait)}, err)
}

// inspect keeps the spec as a revision, and writes into the status what is to be seen. It
// returns when to look again, as for newer versions, 0 for never.
func (r *Reconciler) inspect(ctx context.Context, s *addonsv1.AddonStack) (again time.Duration, err error) {
	s.Status.ObservedGeneration = s.Generation
	revisions, err := revisionHistory{r}.knownRevisions(ctx, s)
	if err != nil {
		return 0, err
	}
	var inForce *addonsv1.AddonStackSpec
	var f *resolution
	problems, paused := stack.Validate(&s.Spec), setPaused(s)
	switch {
	case len(problems) > 0:
		r.reportInvalid(s, problems[0].Reason, "Validate", describe(problems))
	case paused:
		setValid(s, "")
	default:
		f, err = revisionHistory{r}.snapshot(ctx, s, revisions)
		if newer, ok := errors.AsType[*failure.Error](err); ok && newer.Reason == addonsv1.UnknownFieldsReason {
			r.reportInvalid(s, addonsv1.UnknownFieldsReason, "Snapshot", newer.Error())
			f = nil
			break
		}
		if err != nil {
			reportUnkept(s, err)
			return 0, err
		}
		inForce = f.kept
	}
	if inForce == nil && len(revisions) > 0 { // the previous one is
		if inForce, err = stack.SpecOf(&revisions[0]); err != nil {
			return 0, err
		}
		s.Status.LatestRevision = cmp.Or(s.Status.LatestRevision, revisions[0].Name) // that one may be gone, and an older one isn't in force for it
	}
	var clusters []standing.Cluster
	if inForce != nil {
		if f != nil && f.kept != nil {
			revisions = f.revisions
		}
		if clusters, again, err = r.bring(ctx, s, inForce, revisions); err != nil {
			return 0, err
		}
	}
	s.Status.Sources = sourcesOf(s, inForce, clusters, f)
	if f == nil {
		return again, nil
	}
	r.reportSources(s, f)
	return retry.Sooner(again, f.again), nil
}

// bring decides which clusters are to have which of the revisions, the newest first, and reports how far they are. It
// returns the clusters, and when to look again, 0 for never. Without a rollout, all are to have the spec in force.
func (r *Reconciler) bring(ctx context.Context, s *addonsv1.AddonStack, inForce *addonsv1.AddonStackSpec, revisions []appsv1.ControllerRevision) ([]standing.Cluster, time.Duration, error) {
	if s.Spec.Rollout != nil && len(revisions) > 0 {
		return rollouts{r}.bring(ctx, s, revisions)
	}
	r.endRollout(s)
	clusters, err := r.selectedBy(ctx, s, inForce)
	if err != nil {
		return nil, 0, err
	}
	again := r.count(s, clusters, func(ca *addonsv1.ClusterAddon) (string, []addonsv1.Addon) {
		if has := stack.AssignedRevision(ca.Spec.Stacks, s.Name); rollout.IsHeld(ca, s.Name) && has != "" {
			if spec := stack.SpecAt(revisions, has); spec != nil {
				return has, spec.Addons
			}
		}
		return s.Status.LatestRevision, inForce.Addons
	})
	if len(revisions) == 0 {
		return clusters.selected, again, nil
	}
	later, err := rollouts{r}.atOnce(ctx, s, revisions, clusters)
	return clusters.selected, retry.Sooner(again, later), err
}

// waiting returns a context for calls that wait a moment for sources, in the share of the stack's
// namespace. An answer enqueues the stack.
func (r *Reconciler) waiting(ctx context.Context, key client.ObjectKey) context.Context {
	return r.Sources.Waiting(budget.WithTenant(ctx, budget.Tenant{Namespace: key.Namespace}), "AddonStack "+key.String(), func() { r.wake.Add(key) })
}
