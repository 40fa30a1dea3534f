// SPDX-License-Identifier: Apache-2.0

// Package addonstack looks after AddonStacks: it validates each one, keeps
// every valid spec as a ControllerRevision, and sums up what became of it on
// the clusters.
package addonstack

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/hub"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// Reconciler reconciles AddonStacks.
type Reconciler struct {
	Client   client.Client
	Recorder events.EventRecorder
}

// Reconcile brings one AddonStack's revision and status up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req mcreconcile.Request) (_ ctrl.Result, reterr error) {
	s := &addonsv1.AddonStack{}
	if err := r.Client.Get(ctx, req.NamespacedName, s); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !s.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}

	before := s.DeepCopy()
	defer func() {
		summarize(s)
		reterr = errors.Join(reterr, hub.PatchStatus(ctx, r.Client, before, s))
	}()

	s.Status.ObservedGeneration = s.Generation
	if setPaused(s) {
		return ctrl.Result{}, r.count(ctx, s)
	}

	problems := stack.Validate(&s.Spec)
	r.reportValidity(s, problems)
	if len(problems) == 0 {
		if err := r.snapshot(ctx, s); err != nil {
			return retryConflict(err)
		}
	}
	return ctrl.Result{}, r.count(ctx, s)
}

// retryConflict turns a lost race into another try: it says nothing to a user.
func retryConflict(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	return ctrl.Result{}, fmt.Errorf("keeping the revision: %w", err)
}
