// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"errors"
	"slices"

	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/fleetwatch"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// statusReport writes into the status what came of a reconcile, and before that what is about to come.
type statusReport struct{ *clusterRun }

// announce writes wanted add-ons into the status before anything of them is installed.
// So people see what is going on, however long the installation takes.
func (q statusReport) announce(ctx context.Context) error {
	statuses, added := q.announced()
	if !added {
		return nil
	}
	q.ca.Status.Addons, q.ca.Status.ObservedUID = statuses, q.ca.UID
	noteSince(&q.stored.Status, &q.ca.Status, q.now)
	q.reportProofs() // those that a backup brought aren't of this ClusterAddon's records
	if err := q.statuses.Patch(ctx, q.stored, q.ca); err != nil {
		return err
	}
	q.ca.DeepCopyInto(q.stored)
	return nil
}

// announced returns the statuses with those of wanted add-ons; false if they are all there.
func (q statusReport) announced() (all []addonsv1.AddonStatus, added bool) {
	if q.ca.Status.ObservedUID == q.ca.UID {
		all = slices.Clone(q.ca.Status.Addons)
	}
	for i := range q.wanted {
		status := q.wanted[i].status()
		at := indexOf(all, status)
		switch {
		case at < 0:
			is := q.previousStatus(status)
			if reason, _ := upgradeGate(q).heldBack(&q.wanted[i], q.installed[q.wanted[i].release()]); reason != "" {
				is.Reason = reason
			}
			all, added = append(all, is), true
		case all[at].Reason == reasons.StackUnknown:
			all[at].Reason, all[at].Message, added = "", "", true
		}
		if at >= 0 && all[at].ServiceAccountName != status.ServiceAccountName {
			all[at].ServiceAccountName, added = status.ServiceAccountName, true
		}
	}
	return all, added
}

// finish writes the result into the status, and returns when to come back. A failure is
// tried again with backoff, and that must not make others wait that know their time. untold is why a record
// doesn't say yet that its add-on is left behind.
func (q statusReport) finish(all result, untold error) (ctrl.Result, error) {
	all.err = errors.Join(all.err, untold)
	isWhole := !all.unreachable && untold == nil // else some add-ons weren't looked at
	if isWhole {
		q.ca.Status.ObservedGeneration = q.ca.Generation
		q.ca.Status.LastReconcileNow = askedFor(q.ca)
	}
	q.ca.Status.KubernetesVersions = upgradeGate(q).kubernetesVersions()
	removal(q).reportDeletable()
	held := upgradeGate(q).reportUpgrade(all.statuses)
	report(q.ca, slices.Concat(q.kept, all.statuses), q.heldRemovals, q.openQuestions())
	noteSince(&q.stored.Status, &q.ca.Status, q.now)
	q.ca.Status.Stacks = stackStates(&q.stored.Status, &q.ca.Status, q.ca.Spec.Stacks, q.unresolved, isWhole, q.now)
	q.reportProofs()
	if err := q.records.Failure(q.name); fleetwatch.IsLasting(err) {
		conditions.Set(q.ca, recordsUnread(err)) // what was read before may not be so any more
	}
	retryAfter := retry.Sooner(held, retry.Sooner(q.recheckAfter, all.retryAfter))
	if all.err == nil {
		return ctrl.Result{RequeueAfter: retryAfter}, nil
	}
	if retryAfter > 0 {
		q.Queue.AddAfter(client.ObjectKeyFromObject(q.ca), retryAfter)
	}
	return ctrl.Result{}, all.err
}
