// SPDX-License-Identifier: Apache-2.0

package removal

import (
	"context"
	"fmt"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/gather"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/result"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/upgradegate"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/reasons"
)

// waits returns the result of an add-on whose removal waits; false if it may be removed now. The dependent is one that is
// removed before it, "" for none.
func (q Removal) waits(ctx context.Context, record deliver.Summary, dependent string, successors func() []successor) (result.Addon, bool) {
	var awaited string
	var names []string
	var left time.Duration // until a stack, or successors, aren't waited for any more
	facts := decide.Leaving{UpgradeHolds: upgradegate.HoldsRemoval(q.Observed, record), DependentLeaves: dependent != ""}
	if !facts.UpgradeHolds { // from then on the stack is waited for
		awaited, left = q.awaitedStack(record)
		facts.StackAwaited = left > 0
	}
	if dependent == "" {
		dependent = q.stayingDependent(record)
		facts.DependentStays = dependent != ""
	}
	if facts.Step() == decide.FindSuccessors {
		facts.Successor = decide.No
		if !releases.IsRemoving(record) { // else half of it may be gone
			names, left = q.successorsOf(ctx, record, successors())
		}
		if len(names) > 0 {
			facts.Successor = decide.Yes
		}
	}
	reason, text := reasons.WaitingForDependent, ""
	switch facts.Step() {
	case decide.Remove:
		return result.Addon{}, false
	case decide.StayForUpgrade:
		reason, text = reasons.WaitingForUpgrade, fmt.Sprintf("It is removed once the upgrade to Kubernetes %s is done", q.Upgrade.Target)
	case decide.AwaitStack:
		reason, text = reasons.WaitingForSuccessor, fmt.Sprintf(
			"Waiting for AddonStack %s, which may want objects of this one. %s", awaited, q.Unresolved[awaited].Why)
	case decide.AwaitSuccessor:
		reason, text = reasons.WaitingForSuccessor, fmt.Sprintf(
			"Waiting for add-on %s, which may take over objects of this one. See why it isn't ready, or take it out of its stack", message.List(names, ", ", message.Few))
	case decide.AwaitDependent:
		text = fmt.Sprintf("Waiting for add-on %s to be removed", dependent)
	default: // StayForDependent
		text = fmt.Sprintf(
			"Left as it is, because add-on %s depends on it and stays. Remove that one as well, or take this one out of its dependsOn", dependent)
	}
	one := result.Because(unwantedStatus(q.Proofs, record, addonsv1.AddonRemoving), reason, text)
	if reason == reasons.WaitingForSuccessor {
		one.RetryAfter = left
	}
	return one, true
}

// awaitedStack returns a stack that may want objects of a leaving release, but of which nobody knows yet what it wants.
// It is waited for as long as an add-on's progress deadline is by default, as it may be another team's and never come.
// The time that is left is 0 if nothing is waited for.
func (q Removal) awaitedStack(leaving deliver.Summary) (name string, left time.Duration) {
	name, isAwaited := gather.FirstIn(q.Unresolved, decide.StackState.MayTakeOver)
	if !isAwaited || releases.IsRemoving(leaving) {
		return "", 0
	}
	return name, max(0, q.Memory.Of(leaving.Release).LeavesSince(q.Now).Add(addonsv1.DefaultProgressDeadlineSeconds*time.Second).Sub(q.Now))
}

// stayingDependent returns an installed add-on that stays and depends on the record's, as "stack/name": a wanted
// one, or one that is left as it is. It returns "" if there is none, or if the record's removal has begun.
func (q Removal) stayingDependent(record deliver.Summary) string {
	if releases.IsRemoving(record) || q.Absent[releases.Qualified(record)] {
		return ""
	}
	for i := range q.Kept {
		s := &q.Kept[i]
		if other := q.Installed[deliver.Release{Namespace: s.Namespace, Name: s.Name}]; q.Proofs.Prove(other) && releases.DependsOn(other.Stack, other.DependsOn, releases.Qualified(record)) {
			return releases.Qualified(other)
		}
	}
	for i := range q.Wanted {
		a := &q.Wanted[i]
		if _, installed := q.Installed[a.Release()]; installed && releases.DependsOn(a.Stack, a.DependsOn, releases.Qualified(record)) {
			return a.Qualified()
		}
	}
	return ""
}
