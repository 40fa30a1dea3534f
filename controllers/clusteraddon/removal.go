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
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// maxUnknown is how many add-ons are in the status that the ClusterAddon has never run. Nothing else
// bounds them: whoever can write Secrets in the workload cluster can make up records.
const maxUnknown = 128

// removal removes the add-ons that aren't wanted any more.
type removal struct{ *request }

// unwanted returns the records of add-ons that are installed and no longer wanted, in the order of
// removal. It returns the statuses of add-ons that are in doubt, and are left as they are.
func (q removal) unwanted() (leaving []deliver.Summary, kept []addonsv1.AddonStatus) {
	keep := sets.New[deliver.Release]()
	for i := range q.wanted {
		keep.Insert(q.wanted[i].release())
	}
	for _, record := range removalOrder(q.installed, keep) {
		reason, message := whyKept(q.ca, record, q.isProven(record), q.unresolved)
		status := q.unwantedStatus(record, addonsv1.AddonUnassigned)
		switch {
		case reason == "" && !isRemoving(record) && q.holdsAddon(record):
			kept = append(kept, q.previousStatus(status))
		case reason == "" && !q.mayRemove(record):
			status.Reason, status.Message = reasons.ServiceAccountRequired, withoutServiceAccount
			kept = append(kept, status)
		case reason == "":
			leaving = append(leaving, record)
		case reason == reasons.StackUndecided && (q.unresolved[record.Stack].keepsStatus || q.isUndecidedOnlyNow(record)):
			kept = append(kept, q.previousStatus(status))
		default:
			status.Reason, status.Message = reason, shorten(message)
			kept = append(kept, status)
		}
	}
	return leaving, withoutSurplus(kept)
}

// holdsAddon reports whether the removal of an add-on that its stack has no more waits for confirmation.
func (q removal) holdsAddon(record deliver.Summary) bool {
	held := stack.HeldRemoval(q.ca.Spec.Stacks, record.Stack)
	return held != nil && slices.Contains(held.Addons, record.String())
}

// isUndecidedOnlyNow reports whether nobody has to be told yet that a stack can't be read.
func (q removal) isUndecidedOnlyNow(record deliver.Summary) bool {
	if of, unresolved := q.unresolved[record.Stack]; unresolved {
		return of.isNew
	}
	name, awaited := firstAwaited(q.unresolved)
	return awaited && q.unresolved[name].isNew
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

// removeLeaving removes add-ons that aren't wanted any more, dependents first. An add-on whose
// objects a wanted add-on may take over waits for that one. An add-on that a wanted add-on depends
// on stays.
func (q removal) removeLeaving(ctx context.Context, successors []*addon, all *result) {
	if len(q.leaving) == 0 {
		return
	}
	now, waiting := removable(q.leaving)
	contents := rendering(q).contentsOfEach(ctx, successors)
	awaiting := sets.New[deliver.Release]()
	for _, record := range q.leaving {
		status := q.unwantedStatus(record, addonsv1.AddonRemoving)
		if upgradeGate(q).holdsRemoval(record) {
			awaiting.Insert(record.Release)
			all.add(because(status, reasons.WaitingForUpgrade, fmt.Sprintf("It is removed once the upgrade to Kubernetes %s is done", q.upgrade.Target)))
		} else if name, retryAfter := q.awaitedStack(record); retryAfter > 0 {
			awaiting.Insert(record.Release)
			one := because(status, reasons.WaitingForSuccessor, fmt.Sprintf("Waiting for AddonStack %s, which may want objects of this one. %s", name, q.unresolved[name].why))
			one.retryAfter = retryAfter
			all.add(one)
		} else if names, retryAfter := rendering(q).successorsOf(ctx, record, contents); len(names) > 0 {
			awaiting.Insert(record.Release)
			one := because(status, reasons.WaitingForSuccessor, fmt.Sprintf(
				"Waiting for add-on %s, which may take over objects of this one. See why it isn't ready, or take it out of its stack",
				message.List(names, ", ", named)))
			one.retryAfter = retryAfter
			all.add(one)
		} else if by, ok := waiting[record.Release]; ok {
			all.add(because(status, reasons.WaitingForDependent, fmt.Sprintf("Waiting for add-on %s to be removed", by)))
		} else if by := q.stayingDependent(record); by != "" {
			awaiting.Insert(record.Release)
			all.add(because(status, reasons.WaitingForDependent, fmt.Sprintf(
				"Left as it is, because add-on %s depends on it and stays. Remove that one as well, or take this one out of its dependsOn", by)))
		}
	}
	for _, record := range now {
		switch {
		case awaiting.Has(record.Release):
		case all.unreachable:
			all.add(addonResult{status: q.unwantedStatus(record, addonsv1.AddonRemoving)})
		default:
			all.add(q.remove(ctx, record))
		}
	}
}

// remove takes the removal of one add-on as far as it can go.
func (q removal) remove(ctx context.Context, record deliver.Summary) addonResult {
	status := q.unwantedStatus(record, addonsv1.AddonRemoving)
	target, err := q.targetAs(status.ServiceAccountName)
	if err != nil {
		return requestFailed(err, q.previousStatus(status))
	}
	outcome, err := q.Deliverer.Remove(ctx, target, record.Release, q.proofOf(record.Release), q.leavingReleases()...)
	countDelivery(actionRemove, outcome, err)
	delete(q.memory.began, record.Release)
	delete(q.memory.leavingSince, record.Release)
	switch {
	case errors.Is(err, deliver.ErrUnproven):
		q.noteProof(record.Release, "")
		return because(status, reasons.StackUnknown, unknownText(record))
	case err != nil:
		one := requestFailed(err, q.previousStatus(status))
		one.status.Phase = addonsv1.AddonRemoving
		return one
	case outcome.Gone:
		q.memory.installs.DeleteEntry(record.String())
		delete(q.memory.drifts, record.Release)
		q.workload.conn.InvalidateFacts()
		q.record(q.ca, removedEvent(&status, outcome.Message))
		return addonResult{gone: true}
	}
	return delivered(outcome, status)
}

// removalOrder returns the records that aren't kept: by most dependencies, then namespace and name.
func removalOrder(installed map[deliver.Release]deliver.Summary, keep sets.Set[deliver.Release]) []deliver.Summary {
	var records []deliver.Summary
	for release, record := range installed {
		if !keep.Has(release) {
			records = append(records, record)
		}
	}
	slices.SortFunc(records, func(a, b deliver.Summary) int {
		return cmp.Or(
			cmp.Compare(len(b.DependsOn), len(a.DependsOn)),
			cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name),
		)
	})
	return records
}

// whyKept returns why an add-on that no stack wants is left as it is, "" if it is to be removed. A
// ClusterAddon removes only what it ran, as the proof of the record says. So one that a restore has made
// removes nothing. While a stack is awaited that may take the place of another, nothing of that one is
// removed either.
func whyKept(ca *addonsv1.ClusterAddon, record deliver.Summary, ran bool, stacks map[string]unresolvedStack) (reason, message string) {
	if ran && isRemoving(record) {
		return "", ""
	}
	if stack, ok := stacks[record.Stack]; ok {
		if !ran {
			return reasons.StackUnknown, stack.why + "; the add-on is left as it is"
		}
		return reasons.StackUndecided, stack.why + "; the add-on is left as it is"
	}
	isAssigned := slices.ContainsFunc(ca.Spec.Stacks, func(s addonsv1.StackRevision) bool { return s.Name == record.Stack })
	if successor, ok := firstAwaited(stacks); ok && ran && !isAssigned {
		return reasons.StackUndecided, fmt.Sprintf("%s. It may want what AddonStack %s, which is no longer assigned, installed; the add-on is left as it is",
			stacks[successor].why, record.Stack)
	}
	if isTakenOver(ca, record) {
		return deliver.ReasonReleaseTakenOver, "Another management cluster has taken over the release; it is left as it is"
	}
	if ran {
		return "", ""
	}
	return reasons.StackUnknown, unknownText(record)
}

// unknown says why an add-on is left that only a record knows, and the way out.
func unknownText(record deliver.Summary) string {
	return fmt.Sprintf("Its release record names AddonStack %q, and isn't one that this ClusterAddon wrote; the add-on is left as it is. "+
		"To have it removed, create that AddonStack with it, and take it out again once it is Ready; or uninstall the release with helm. "+
		"If nobody knows it, see who may write Secrets in namespace %s of the cluster", record.Stack, record.Namespace)
}

// isTakenOver reports whether another management cluster goes on with the release.
func isTakenOver(ca *addonsv1.ClusterAddon, record deliver.Summary) bool {
	return ca.Status.ObservedUID == ca.UID && slices.ContainsFunc(ca.Status.Addons, func(known addonsv1.AddonStatus) bool {
		return known.Name == record.Name && known.Namespace == record.Namespace && known.Reason == deliver.ReasonReleaseTakenOver
	})
}

// isRemoving reports whether the removal has begun: half of the add-on may be gone.
func isRemoving(record deliver.Summary) bool {
	return record.Complete && record.Status == deliver.StatusUninstalling
}
