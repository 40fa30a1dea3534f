// SPDX-License-Identifier: Apache-2.0

package removal

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/gather"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/result"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// maxUnknown is how many add-ons are in the status that the ClusterAddon has never run. Nothing else
// bounds them: whoever can write Secrets in the workload cluster can make up records.
const maxUnknown = 128

// Unwanted are the installed add-ons that no stack of the cluster wants.
type Unwanted struct {
	*gather.Observed
	Proofs *releases.Proofs
	// NeedsAccount says that the instance delivers with the rights of ServiceAccounts alone.
	NeedsAccount bool
}

// Partition returns the records of the add-ons to remove, in that order, and the statuses of those that are in doubt, and are
// left as they are.
func (q Unwanted) Partition() (leaving []deliver.Summary, kept []addonsv1.AddonStatus) {
	keep := sets.New[deliver.Release]()
	for i := range q.Wanted {
		keep.Insert(q.Wanted[i].Release())
	}
	return q.partition(releases.InOrder(q.Installed, keep), func(record deliver.Summary) decide.Fate { return q.factsOf(record).Fate() })
}

// partition returns the records to remove, and the statuses of the others.
func (q Unwanted) partition(records []deliver.Summary, fateOf func(deliver.Summary) decide.Fate) (leaving []deliver.Summary, kept []addonsv1.AddonStatus) {
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
func (q Unwanted) factsOf(record deliver.Summary) decide.Unwanted {
	of, isUnresolved := q.Unresolved[record.Stack]
	awaited, isAwaited := gather.FirstAwaited(q.Unresolved)
	return decide.Unwanted{
		Ran:          q.Proofs.Prove(record),
		Removing:     releases.IsRemoving(record),
		Stack:        of.State,
		Assigned:     slices.ContainsFunc(q.ClusterAddon.Spec.Stacks, func(s addonsv1.StackRevision) bool { return s.Name == record.Stack }),
		OtherAwaited: isAwaited,
		Passing:      of.IsNew || !isUnresolved && isAwaited && q.Unresolved[awaited].IsNew,
		Paused:       q.Paused.Has(record.Stack),
		TakenOver:    isTakenOver(q.ClusterAddon, record),
		RemovalHeld:  q.holdsAddon(record) || q.Returning.Has(record.String()),
		LacksAccount: q.lacksAccount(record),
	}
}

// lacksAccount reports whether an add-on can't be removed with the rights that its record names.
func (q Unwanted) lacksAccount(record deliver.Summary) bool {
	return q.NeedsAccount && record.ServiceAccount == ""
}

// keptStatus returns the status of an add-on that is left as it is, with the reason.
func (q Unwanted) keptStatus(record deliver.Summary, fate decide.Fate) addonsv1.AddonStatus {
	status := unwantedStatus(q.Proofs, record, addonsv1.AddonUnassigned)
	of, isUnresolved := q.Unresolved[record.Stack]
	switch fate {
	case decide.KeepsStatus:
		status.Reason = reasons.StackUndecided
		status.Message = result.Shorten(cmp.Or(of.Why, "Its stack, or another one, may still want it") + "; the add-on is left as it is")
		was := result.Previous(q.ClusterAddon.Status.Addons, status)
		if was.Reason != reasons.StackPaused || of.State != decide.Held { // a confirmation ends that pause
			status = was
		}
		if q.isMoved(record) {
			status.Message = "It moves to another AddonStack: it stays as it is until this cluster gets that one (spec.stacks[].movedAddons)"
		}
	case decide.StackPaused:
		status.Phase, status.Reason = addonsv1.AddonRemoving, reasons.StackPaused
		status.Message = fmt.Sprintf("It is removed once AddonStack %s is resumed or, if that is gone, made again without a pause", record.Stack)
	case decide.WithoutAccount:
		status.Reason, status.Message = reasons.ServiceAccountRequired, result.WithoutServiceAccount
	case decide.TakenOver:
		status.Reason, status.Message = deliver.ReasonReleaseTakenOver, "Another management cluster has taken over the release; it is left as it is"
	case decide.StackUndecided:
		status.Reason, status.Message = reasons.StackUndecided, result.Shorten(of.Why+"; the add-on is left as it is")
	case decide.SuccessorUndecided:
		successor, _ := gather.FirstAwaited(q.Unresolved)
		status.Reason, status.Message = reasons.StackUndecided, result.Shorten(fmt.Sprintf(
			"%s. It may want what AddonStack %s, which is no longer assigned, installed; the add-on is left as it is", q.Unresolved[successor].Why, record.Stack))
	case decide.Unknown, decide.Leaves:
		status.RecordedRevision = record.StackRevision
		status.Reason, status.Message = reasons.StackUnknown, result.Shorten(unknownText(record))
		if isUnresolved {
			status.Message = result.Shorten(of.Why + "; the add-on is left as it is")
		}
	}
	return status
}

// holdsAddon reports whether the removal of an add-on that its stack has no more waits for confirmation, or for another stack.
func (q Unwanted) holdsAddon(record deliver.Summary) bool {
	held := stack.Assigned(q.ClusterAddon.Spec.Stacks, record.Stack).HeldRemoval
	return held != nil && slices.Contains(held.Addons, record.String()) || q.isMoved(record)
}

// isMoved reports whether an add-on stays until another stack brings it.
func (q Unwanted) isMoved(record deliver.Summary) bool {
	return slices.Contains(stack.Assigned(q.ClusterAddon.Spec.Stacks, record.Stack).MovedAddons, record.String())
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
		named[first].Message = result.Shorten(fmt.Sprintf("%d more add-ons are unknown. %s", number-maxUnknown, named[first].Message))
	}
	return named
}

// unwantedStatus returns the status of an add-on that only a record knows. It has the name of an account
// only if the record is proven.
func unwantedStatus(proofs *releases.Proofs, record deliver.Summary, phase addonsv1.AddonPhase) addonsv1.AddonStatus {
	status := releases.Status(record, phase)
	if proofs.Prove(record) {
		status.ServiceAccountName = record.ServiceAccount
	}
	return status
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
