// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/fleetwatch"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// statusReport writes into the status what came of a reconcile, and before that what is about to come.
type statusReport struct{ *clusterRun }

// announce writes wanted add-ons into the status before anything of them is installed.
// So people see what is going on, however long the installation takes.
func (q statusReport) announce(ctx context.Context) error {
	statuses, added := q.announced()
	if ends := removal(q).noteOrphans(); !added && !ends {
		return nil
	}
	q.ca.Status.Addons, q.ca.Status.ObservedUID = statuses, q.ca.UID
	noteSince(&q.stored.Status, &q.ca.Status, q.now)
	q.proofs.Report(q.ca.Status.Addons) // those that a backup brought aren't of this ClusterAddon's records
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
		status := q.wanted[i].Status()
		at := indexOf(all, status)
		switch {
		case at < 0:
			is := q.previousStatus(status)
			if reason, _ := q.gate().heldBack(&q.wanted[i], q.installed[q.wanted[i].Release()]); reason != "" {
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
	q.ca.Status.KubernetesVersions = q.gate().kubernetesVersions()
	removal(q).reportDeletable()
	held := q.reportUpgrade(all.statuses)
	report(q.ca, slices.Concat(q.kept, all.statuses), q.heldRemovals, q.openQuestions(q.installed))
	noteSince(&q.stored.Status, &q.ca.Status, q.now)
	q.ca.Status.Stacks = stackStates(&q.stored.Status, &q.ca.Status, q.ca.Spec.Stacks, q.unresolved, isWhole, q.now)
	if untold == nil {
		removal(q).noteOrphans()
	}
	q.proofs.Report(q.ca.Status.Addons)
	if err := q.records.Failure(q.workload.Name); fleetwatch.IsLasting(err) {
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

// noteSince writes since when add-ons have been in their phases, for their reasons. The times of those that are as they
// were stay. A status that a backup brought is of another ClusterAddon, and says nothing.
func noteSince(before, after *addonsv1.ClusterAddonStatus, now time.Time) {
	for i := range after.Addons {
		s := &after.Addons[i]
		at := indexOf(before.Addons, *s)
		if at >= 0 && before.ObservedUID == after.ObservedUID && before.Addons[at].Phase == s.Phase && before.Addons[at].Reason == s.Reason {
			s.Since = before.Addons[at].Since
		} else {
			s.Since = timeOf(now)
		}
	}
}

// stackStates returns the assigned stacks with the states of their add-ons. A stack that can't be read for only a
// moment keeps its state. So does each one if not all add-ons were looked at; a revision that is new has begun then.
func stackStates(before, after *addonsv1.ClusterAddonStatus, assigned []addonsv1.StackRevision, unresolved map[string]unresolvedStack, isWhole bool, now time.Time) []addonsv1.StackStatus {
	var all []addonsv1.StackStatus
	for _, a := range assigned {
		is := addonsv1.StackStatus{Name: a.Name, Revision: a.Revision, State: stateOf(a.Name, after.Addons), Since: timeOf(now)}
		var was addonsv1.StackStatus
		if before.ObservedUID == after.ObservedUID {
			was = *stack.StatusOf(before, a.Name)
		}
		switch of, isUnresolved := unresolved[a.Name]; {
		case was.State != "" && (of.state.KeepsStatus() || (of.isNew || !isWhole) && was.Revision == is.Revision):
			is.State = was.State
		case was.State != "" && of.isNew: // nobody has seen yet which add-ons the new revision has
			is.State = addonsv1.StackProgressing
		case isUnresolved:
			is.State = addonsv1.StackUnknown
		case !isWhole:
			is.State = addonsv1.StackProgressing
		}
		if was.State == is.State && was.Revision == is.Revision {
			is.Since = was.Since
		}
		is.Started, is.WasReady, is.Previous = startOf(was, is)
		if hasPaused(a.Name, before.Addons) && !hasPaused(a.Name, after.Addons) {
			is.Started = timeOf(now) // the time of a pause isn't its own
		}
		all = append(all, is)
	}
	return all
}

// hasPaused reports whether an add-on waits until its stack is resumed.
func hasPaused(stack string, addons []addonsv1.AddonStatus) bool {
	return slices.ContainsFunc(addons, func(a addonsv1.AddonStatus) bool { return a.Stack == stack && a.Reason == reasons.StackPaused })
}

// startOf returns when work on the stack began, whether it was ready at the revision before, and the one that it was ready at
// last.
func startOf(was, is addonsv1.StackStatus) (started metav1.Time, wasReady *bool, previous string) {
	isOld := was.Revision == is.Revision && was.State != "" && !was.Started.IsZero()
	switch leavesReady := was.State == addonsv1.StackReady && is.State != addonsv1.StackReady; {
	case isOld && !leavesReady:
		return was.Started, was.WasReady, was.Previous
	case isOld:
		return is.Since, was.WasReady, was.Previous
	case was.State == "" || was.Revision == "":
		return is.Since, nil, ""
	}
	wasReady, previous = rollout.Leave(was, is.Revision)
	return is.Since, wasReady, previous
}

// isAskedAgain reports whether somebody asks to try at once what failed.
func isAskedAgain(ca *addonsv1.ClusterAddon) bool {
	return askedFor(ca) != "" && askedFor(ca) != ca.Status.LastReconcileNow
}

// askedFor returns what status.lastReconcileNow is to be.
func askedFor(ca *addonsv1.ClusterAddon) string {
	value := ca.Annotations[addonsv1.ReconcileNowAnnotation]
	return value[:min(len(value), 256)]
}
