// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// maxUnknown is how many add-ons are in the status that the ClusterAddon has never run. Nothing else
// bounds them: whoever can write Secrets in the workload cluster can make up records.
const maxUnknown = 128

// removal removes the add-ons that aren't wanted any more.
type removal struct{ *clusterRun }

// unwanted returns the records of add-ons that are installed and no longer wanted, in the order of
// removal. It returns the statuses of add-ons that are in doubt, and are left as they are.
func (q removal) unwanted() (leaving []deliver.Summary, kept []addonsv1.AddonStatus) {
	keep := sets.New[deliver.Release]()
	for i := range q.wanted {
		keep.Insert(q.wanted[i].Release())
	}
	return q.parted(releases.InOrder(q.installed, keep), func(record deliver.Summary) decide.Fate { return q.factsOf(record).Fate() })
}

// parted returns the records whose fate it is to leave, and the statuses of the others.
func (q removal) parted(records []deliver.Summary, fateOf func(deliver.Summary) decide.Fate) (leaving []deliver.Summary, kept []addonsv1.AddonStatus) {
	for _, record := range records {
		if fate := fateOf(record); fate == decide.Leaves {
			leaving = append(leaving, record)
		} else {
			kept = append(kept, q.keptStatus(record, fate))
		}
	}
	return leaving, withoutSurplus(kept)
}

// factsOf gathers what is known of an add-on that no stack wants.
func (q removal) factsOf(record deliver.Summary) decide.Unwanted {
	of, isUnresolved := q.unresolved[record.Stack]
	awaited, isAwaited := firstAwaited(q.unresolved)
	return decide.Unwanted{
		Ran:          q.proofs.Prove(record),
		Removing:     releases.IsRemoving(record),
		Stack:        of.state,
		Assigned:     slices.ContainsFunc(q.ca.Spec.Stacks, func(s addonsv1.StackRevision) bool { return s.Name == record.Stack }),
		OtherAwaited: isAwaited,
		Passing:      of.isNew || !isUnresolved && isAwaited && q.unresolved[awaited].isNew,
		Paused:       q.paused.Has(record.Stack),
		TakenOver:    isTakenOver(q.ca, record),
		RemovalHeld:  q.holdsAddon(record),
		LacksAccount: !q.mayRemove(record),
	}
}

// keptStatus returns the status of an add-on that is left as it is, with the reason.
func (q removal) keptStatus(record deliver.Summary, fate decide.Fate) addonsv1.AddonStatus {
	status := q.unwantedStatus(record, addonsv1.AddonUnassigned)
	of, isUnresolved := q.unresolved[record.Stack]
	switch fate {
	case decide.KeepsStatus:
		status.Reason, status.Message = reasons.StackUndecided, shorten(cmp.Or(of.why, "Its stack, or another one, may still want it")+"; the add-on is left as it is")
		if was := q.previousStatus(status); was.Reason != reasons.StackPaused || of.state != decide.Held { // a confirmation ends that pause
			status = was
		}
		if q.isMoved(record) {
			status.Message = "It moves to another AddonStack: it stays as it is until this cluster gets that one (spec.stacks[].movedAddons)"
		}
	case decide.StackPaused:
		status.Phase, status.Reason = addonsv1.AddonRemoving, reasons.StackPaused
		status.Message = fmt.Sprintf("It is removed once AddonStack %s is resumed or, if that is gone, made again without a pause", record.Stack)
	case decide.WithoutAccount:
		status.Reason, status.Message = reasons.ServiceAccountRequired, withoutServiceAccount
	case decide.TakenOver:
		status.Reason, status.Message = deliver.ReasonReleaseTakenOver, "Another management cluster has taken over the release; it is left as it is"
	case decide.StackUndecided:
		status.Reason, status.Message = reasons.StackUndecided, shorten(of.why+"; the add-on is left as it is")
	case decide.SuccessorUndecided:
		successor, _ := firstAwaited(q.unresolved)
		status.Reason, status.Message = reasons.StackUndecided, shorten(fmt.Sprintf(
			"%s. It may want what AddonStack %s, which is no longer assigned, installed; the add-on is left as it is", q.unresolved[successor].why, record.Stack))
	case decide.Unknown, decide.Leaves:
		status.RecordedRevision = record.StackRevision
		status.Reason, status.Message = reasons.StackUnknown, shorten(unknownText(record))
		if isUnresolved {
			status.Message = shorten(of.why + "; the add-on is left as it is")
		}
	}
	return status
}

// holdsAddon reports whether the removal of an add-on that its stack has no more waits for confirmation, or for another stack.
func (q removal) holdsAddon(record deliver.Summary) bool {
	held := stack.Assigned(q.ca.Spec.Stacks, record.Stack).HeldRemoval
	return held != nil && slices.Contains(held.Addons, record.String()) || q.isMoved(record)
}

// isMoved reports whether an add-on stays until another stack brings it.
func (q removal) isMoved(record deliver.Summary) bool {
	return slices.Contains(stack.Assigned(q.ca.Spec.Stacks, record.Stack).MovedAddons, record.String())
}

// withoutSurplus returns the statuses with no more than the first ones of add-ons that nobody knows.
func withoutSurplus(kept []addonsv1.AddonStatus) []addonsv1.AddonStatus {
	number := 0
	named := slices.DeleteFunc(kept, func(s addonsv1.AddonStatus) bool {
		if s.Reason == reasons.StackUnknown {
			number++
		}
		return s.Reason == reasons.StackUnknown && number > maxUnknown
	})
	if number > maxUnknown {
		first := slices.IndexFunc(named, func(s addonsv1.AddonStatus) bool { return s.Reason == reasons.StackUnknown })
		named[first].Message = shorten(fmt.Sprintf("%d more add-ons are unknown. %s", number-maxUnknown, named[first].Message))
	}
	return named
}

// remove takes the removal of one add-on as far as it can go.
func (q removal) remove(ctx context.Context, record deliver.Summary) addonResult {
	status := q.unwantedStatus(record, addonsv1.AddonRemoving)
	if q.isToldOrphan(record) && record.DeletionPolicy != addonsv1.DeletionPolicyOrphan {
		return addonResult{status: q.previousStatus(status)} // the record couldn't be told
	}
	target, err := q.workload.As(status.ServiceAccountName)
	if err != nil {
		return requestFailed(err, q.previousStatus(status))
	}
	outcome, err := q.Deliverer.Remove(ctx, target, record.Release, q.proofs.Of(record.Release), q.leavingReleases()...)
	countDelivery(actionRemove, outcome, err)
	delete(q.memory.addons, record.Release)
	switch {
	case errors.Is(err, deliver.ErrUnproven):
		q.proofs.Note(record.Release, "")
		return because(status, reasons.StackUnknown, unknownText(record))
	case err != nil:
		one := requestFailed(err, q.previousStatus(status))
		one.status.Phase = addonsv1.AddonRemoving
		return one
	case outcome.Gone:
		q.memory.installs.DeleteEntry(record.String())
		q.workload.Conn.InvalidateFacts()
		q.record(q.ca, removedEvent(&status, outcome.Message))
		return addonResult{gone: true}
	}
	return delivered(outcome, status)
}

// unknownText says why an add-on is left that only a record knows, and the way out.
func unknownText(record deliver.Summary) string {
	return fmt.Sprintf("Its release record names AddonStack %q, and isn't one that this ClusterAddon wrote; the add-on is left as it is. "+
		"To have it removed, create that AddonStack with it, and take it out again once it is Ready; or uninstall the release with helm. "+
		"If nobody knows it, see who may write Secrets in namespace %s of the cluster", record.Stack, record.Namespace)
}

// isTakenOver reports whether another management cluster continues with the release.
func isTakenOver(ca *addonsv1.ClusterAddon, record deliver.Summary) bool {
	return ca.Status.ObservedUID == ca.UID && slices.ContainsFunc(ca.Status.Addons, func(known addonsv1.AddonStatus) bool {
		return known.Name == record.Name && known.Namespace == record.Namespace && known.Reason == deliver.ReasonReleaseTakenOver
	})
}
