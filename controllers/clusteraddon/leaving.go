// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// departure is all that a reconcile knows of one add-on that is to be removed, for its decision.
type departure struct {
	facts  decide.Leaving
	record deliver.Summary
	// stack is the one that is awaited, successors are the add-ons that may take objects over, and retryAfter is when
	// either isn't waited for any more.
	stack      string
	successors []string
	retryAfter time.Duration
	// dependent is an add-on that is removed first, or that depends on this one and stays.
	dependent string
}

// removeLeaving removes add-ons that aren't wanted any more, dependents first. An add-on whose
// objects a wanted add-on may take over waits for that one. An add-on that a wanted add-on depends
// on stays.
func (q removal) removeLeaving(ctx context.Context, successors []*addon, all *result) {
	if len(q.leaving) == 0 {
		return
	}
	dependents := dependentsAmong(q.leaving)
	contents := sync.OnceValue(func() []successor { return rendering(q).contentsOfEach(ctx, successors) })
	var now []deliver.Summary
	for _, record := range q.leaving {
		d := q.departureOf(record, dependents[record.Release])
		if d.facts.Step() == decide.FindSuccessors {
			q.findSuccessors(ctx, d, contents())
		}
		if step := d.facts.Step(); step == decide.Remove {
			now = append(now, record)
		} else {
			all.add(q.wait(d, step))
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

// departureOf gathers what is known without a request of an add-on that is to be removed. Before it, the dependent is.
func (q removal) departureOf(record deliver.Summary, dependent string) *departure {
	d := &departure{record: record, dependent: dependent}
	d.facts = decide.Leaving{UpgradeHolds: upgradeGate(q).holdsRemoval(record), DependentLeaves: dependent != ""}
	if !d.facts.UpgradeHolds { // from then on the stack is waited for
		d.stack, d.retryAfter = q.awaitedStack(record)
		d.facts.StackAwaited = d.retryAfter > 0
	}
	if dependent == "" {
		d.dependent = q.stayingDependent(record)
		d.facts.DependentStays = d.dependent != ""
	}
	return d
}

// findSuccessors asks the cluster which objects the add-on has, to find out who may take them over.
func (q removal) findSuccessors(ctx context.Context, d *departure, contents []successor) {
	d.facts.Successor = decide.No
	if d.successors, d.retryAfter = rendering(q).successorsOf(ctx, d.record, contents); len(d.successors) > 0 {
		d.facts.Successor = decide.Yes
	}
}

// wait returns the result of an add-on whose removal waits.
func (q removal) wait(d *departure, step decide.LeavingStep) addonResult {
	status := q.unwantedStatus(d.record, addonsv1.AddonRemoving)
	switch step {
	case decide.StayForUpgrade:
		return because(status, reasons.WaitingForUpgrade, fmt.Sprintf("It is removed once the upgrade to Kubernetes %s is done", q.upgrade.Target))
	case decide.AwaitStack:
		one := because(status, reasons.WaitingForSuccessor, fmt.Sprintf("Waiting for AddonStack %s, which may want objects of this one. %s", d.stack, q.unresolved[d.stack].why))
		one.retryAfter = d.retryAfter
		return one
	case decide.AwaitSuccessor:
		one := because(status, reasons.WaitingForSuccessor, fmt.Sprintf(
			"Waiting for add-on %s, which may take over objects of this one. See why it isn't ready, or take it out of its stack",
			message.List(d.successors, ", ", named)))
		one.retryAfter = d.retryAfter
		return one
	case decide.AwaitDependent:
		return because(status, reasons.WaitingForDependent, fmt.Sprintf("Waiting for add-on %s to be removed", d.dependent))
	}
	return because(status, reasons.WaitingForDependent, fmt.Sprintf(
		"Left as it is, because add-on %s depends on it and stays. Remove that one as well, or take this one out of its dependsOn", d.dependent))
}

// mayBringKinds reports whether a change of an add-on may bring API kinds to the cluster, or take
// some away. The kinds of its objects tell. An operator may bring others, so dependents count, too.
func (q rendering) mayBringKinds(a *addon, before, after string) bool {
	for kind := range strings.SplitSeq(before+","+after, ",") {
		if strings.HasSuffix(kind, "/CustomResourceDefinition") || strings.HasSuffix(kind, "/APIService") {
			return true
		}
	}
	return slices.ContainsFunc(q.wanted, func(other addon) bool { return dependsOn(other.stack, other.DependsOn, a.qualified()) })
}

// awaitedStack returns a stack that may want objects of a leaving release, but of which nobody knows yet what it wants.
// It is waited for as long as an add-on's progress deadline is by default, as it may be another team's and never come.
// The time that is left is 0 if nothing is waited for.
func (q removal) awaitedStack(leaving deliver.Summary) (name string, left time.Duration) {
	name, isAwaited := firstIn(q.unresolved, decide.StackState.MayTakeOver)
	if !isAwaited || isRemoving(leaving) {
		return "", 0
	}
	return name, max(0, q.memory.of(leaving.Release).leavesSince(q.now).Add(addonsv1.DefaultProgressDeadlineSeconds*time.Second).Sub(q.now))
}

func (q rendering) contentsOfEach(ctx context.Context, successors []*addon) []successor {
	all := make([]successor, 0, len(successors))
	for _, a := range successors {
		all = append(all, successor{a, q.contentsOf(ctx, a)})
	}
	return all
}

// successorsOf names the add-ons that are to have an object of a leaving one. Where their objects
// aren't known, it names those of the same stack, and those that aren't installed. It names these for no longer than
// their progress deadline, as another team's add-on may never come. It also returns when that is over, 0 for no time.
func (q rendering) successorsOf(ctx context.Context, leaving deliver.Summary, successors []successor) (names []string, retryAfter time.Duration) {
	if len(successors) == 0 {
		return nil, 0
	}
	objects, listed, err := q.Deliverer.Holds(ctx, q.workload.target(), leaving.Release)
	if err != nil {
		listed = false // whoever removes it will hear of it
	}
	since := q.memory.of(leaving.Release).leavesSince(q.now)
	for _, a := range successors {
		shares := a.stack == leaving.Stack
		switch left := since.Add(progressDeadline(a.addon)).Sub(q.now); {
		case a.contents != nil && listed:
			shares = a.contents.HasAny(objects...)
		case !shares && !q.installed[a.release()].Installed && left > 0:
			shares, retryAfter = true, retry.Sooner(retryAfter, left)
		}
		if shares {
			names = append(names, fmt.Sprintf("%s of AddonStack %s", a.Name, a.stack))
		}
	}
	return names, retryAfter
}
