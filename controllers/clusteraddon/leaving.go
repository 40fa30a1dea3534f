// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"fmt"
	"sync"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/reasons"
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
