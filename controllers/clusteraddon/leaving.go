// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"fmt"
	"sync"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/reasons"
)

// removeLeaving removes add-ons that aren't wanted any more, dependents first. An add-on whose
// objects a wanted add-on may take over waits for that one. An add-on that a wanted add-on depends
// on stays.
func (q removal) removeLeaving(ctx context.Context, successors []*wanted.Addon, all *result) {
	if len(q.leaving) == 0 {
		return
	}
	dependents := releases.Dependents(q.leaving)
	each := sync.OnceValue(func() (all []successor) {
		for _, a := range successors {
			all = append(all, successor{a, q.contentsOf(ctx, a)})
		}
		return all
	})
	var now []deliver.Summary
	for _, record := range q.leaving {
		if one, waits := q.waits(ctx, record, dependents[record.Release], each); waits {
			all.add(one)
		} else {
			now = append(now, record)
		}
	}
	for _, record := range now {
		if all.unreachable {
			all.add(addonResult{status: q.unwantedStatus(record, addonsv1.AddonRemoving)})
		} else {
			all.add(q.remove(ctx, record))
		}
	}
}

// waits returns the result of an add-on whose removal waits; false if it may be removed now. The dependent is one that is
// removed before it, "" for none.
func (q removal) waits(ctx context.Context, record deliver.Summary, dependent string, successors func() []successor) (addonResult, bool) {
	var awaited string
	var names []string
	var left time.Duration // until a stack, or successors, aren't waited for any more
	facts := decide.Leaving{UpgradeHolds: q.gate().holdsRemoval(record), DependentLeaves: dependent != ""}
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
		return addonResult{}, false
	case decide.StayForUpgrade:
		reason, text = reasons.WaitingForUpgrade, fmt.Sprintf("It is removed once the upgrade to Kubernetes %s is done", q.upgrade.Target)
	case decide.AwaitStack:
		reason, text = reasons.WaitingForSuccessor, fmt.Sprintf(
			"Waiting for AddonStack %s, which may want objects of this one. %s", awaited, q.unresolved[awaited].why)
	case decide.AwaitSuccessor:
		reason, text = reasons.WaitingForSuccessor, fmt.Sprintf(
			"Waiting for add-on %s, which may take over objects of this one. See why it isn't ready, or take it out of its stack", message.List(names, ", ", named))
	case decide.AwaitDependent:
		text = fmt.Sprintf("Waiting for add-on %s to be removed", dependent)
	default: // StayForDependent
		text = fmt.Sprintf(
			"Left as it is, because add-on %s depends on it and stays. Remove that one as well, or take this one out of its dependsOn", dependent)
	}
	one := because(q.unwantedStatus(record, addonsv1.AddonRemoving), reason, text)
	if reason == reasons.WaitingForSuccessor {
		one.retryAfter = left
	}
	return one, true
}

// awaitedStack returns a stack that may want objects of a leaving release, but of which nobody knows yet what it wants.
// It is waited for as long as an add-on's progress deadline is by default, as it may be another team's and never come.
// The time that is left is 0 if nothing is waited for.
func (q removal) awaitedStack(leaving deliver.Summary) (name string, left time.Duration) {
	name, isAwaited := firstIn(q.unresolved, decide.StackState.MayTakeOver)
	if !isAwaited || releases.IsRemoving(leaving) {
		return "", 0
	}
	return name, max(0, q.memory.of(leaving.Release).leavesSince(q.now).Add(addonsv1.DefaultProgressDeadlineSeconds*time.Second).Sub(q.now))
}
