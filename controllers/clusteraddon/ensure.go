// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// delivery installs and upgrades the add-ons that are wanted.
type delivery struct{ *request }

// ensureAll takes each wanted add-on as far as it can go, and returns those that may take objects over.
func (q delivery) ensureAll(ctx context.Context) (all result, successors []*addon) {
	holder := claims(q.wanted, q.installed, q.unresolved)
	ready := map[string]bool{} // "stack/name"
	maps.Copy(ready, q.absent) // what isn't there now holds nobody
	for i := range q.wanted {
		a := &q.wanted[i]
		var one addonResult
		if by := holder[a.release()]; all.unreachable || a.outdated {
			one.status = q.previousStatus(a.status())
		} else if by != a.stack {
			one = because(a.status(), reasons.ReleaseTaken, fmt.Sprintf(
				"AddonStack %s has an add-on %s in namespace %s already; change spec.addons[].name or namespace of one of them",
				by, a.Name, a.release().Namespace))
		} else {
			one = q.ensure(ctx, a, ready)
		}
		if mayTakeOver(one) {
			successors = append(successors, a)
		}
		// An add-on that waits for a point of an upgrade runs as it was.
		runs := isHeldBack(one.status.Reason) && q.installed[a.release()].Status == deliver.StatusDeployed
		ready[a.stack+"/"+a.Name] = isInstalled(one.status.Phase) || runs
		all.add(one)
	}
	return all, successors
}

// isInstalled reports whether an add-on of the phase is installed as wanted, and was ready. Others don't wait for one
// that is Degraded since: their change may be what helps.
func isInstalled(phase addonsv1.AddonPhase) bool {
	return phase == addonsv1.AddonReady || phase == addonsv1.AddonDegraded
}

// ensure takes one add-on as far as it can go. Ready are those that others may depend on.
func (q delivery) ensure(ctx context.Context, a *addon, ready map[string]bool) (one addonResult) {
	record, status := q.installed[a.release()], q.installedStatus(a)
	defer q.contain(ctx, status, &one)
	if q.RequireImpersonation && a.serviceAccount == "" {
		return because(status, reasons.ServiceAccountRequired, withoutServiceAccount)
	}
	if a.incompatible != "" {
		return driftRepair(q).correctDrift(ctx, a, record, because(status, reasons.NoCompatibleVersion, a.incompatible))
	}
	is := q.compare(ctx, a, record)
	written := q.setTerms(ctx, a, record, is.terms)
	if written.unreachable {
		return addonResult{status: q.previousStatus(status), followUp: written}
	}
	switch {
	case isReplaced(is.err):
		one = q.ensureReplaced(ctx, is.err, a, ready, status)
	case is.err != nil:
		one = q.inputFailed(ctx, is.err, a, record, status)
	case is.unmet != nil:
		one = awaitPostcondition(a, is.unmet, status)
	case is.settled:
		one.status, one.status.Phase = status, addonsv1.AddonReady
		one.status.Message = q.missingDependency(a)
		if !record.RenewAt.IsZero() {
			one.retryAfter = record.RenewAt.Sub(q.now)
		}
	default:
		if reason, message := upgradeGate(q).heldBack(a, record); reason != "" {
			one = because(status, reason, message)
		} else {
			one = q.change(ctx, is.in, ready, status)
		}
	}
	one = healthCheck(q).judgeHealth(ctx, a, record, driftRepair(q).correctDrift(ctx, a, record, q.stillFailed(a, one)))
	one.followUp = one.and(written)
	return one
}

// installedStatus returns the status of a wanted add-on with what its record says.
func (q delivery) installedStatus(a *addon) addonsv1.AddonStatus {
	status := a.status()
	record, installed := q.installed[a.release()]
	if !installed {
		return status
	}
	describe(&status, record)
	if record.Status == deliver.StatusDeployed {
		return status
	}
	// The record of a revision that isn't deployed doesn't tell how many objects are ready.
	switch was := q.previousStatus(status); {
	case was.Revision != status.Revision:
	case was.Objects == nil:
		status.Objects = nil
	default:
		status.Objects.Ready = min(was.Objects.Ready, status.Objects.Total)
	}
	return status
}

// comparison is how an add-on differs from what is installed of it.
type comparison struct {
	in      *inputs
	settled bool            // the record is of just these inputs
	unmet   *unmetCondition // that the settled add-on waits for
	terms   deliver.Terms   // that its record is to have
	err     error           // why that can't be told
}

// compare resolves the inputs, and compares them with those of the record.
func (q delivery) compare(ctx context.Context, a *addon, record deliver.Summary) (is comparison) {
	if is.err = inputReader(q).checkPinned(ctx, a); is.err == nil {
		is.in, is.err = inputReader(q).inputs(ctx, a, record)
	}
	if is.err == nil {
		is.settled, is.err = rendering(q).settled(ctx, is.in, record)
	}
	is.terms = termsOf(a, record, is.in, is.settled)
	if is.settled {
		if is.unmet, is.err = conditionCheck(q).unmetPostcondition(ctx, a, record); is.unmet == nil && is.err == nil {
			is.terms.Postconditions = postconditionsDigest(a)
		}
	}
	return is
}

// change installs or upgrades an add-on, if nothing holds it.
func (q delivery) change(ctx context.Context, in *inputs, ready map[string]bool, status addonsv1.AddonStatus) addonResult {
	a := in.addon
	record, installed := q.installed[a.release()]
	if !installed && stack.HeldRemoval(q.ca.Spec.Stacks, a.stack) != nil {
		return because(status, reasons.WaitingForConfirmation, fmt.Sprintf(
			"Waiting until the removal of other add-ons of AddonStack %s is confirmed or undone: it may come in the place of one of them", a.stack))
	}
	if i := slices.IndexFunc(a.DependsOn, func(d string) bool { return !ready[stack.Qualified(a.stack, d)] }); i >= 0 {
		return because(status, reasons.WaitingForDependency, q.describeMissing(a, a.DependsOn[i]))
	}
	unmet, err := conditionCheck(q).unmetPrecondition(ctx, in, record)
	if err != nil {
		return requestFailed(err, q.previousStatus(status))
	}
	if unmet != nil {
		one := because(status, reasons.WaitingForPrecondition, unmet.message)
		one.retryAfter = unmet.retryAfter
		return one
	}
	if pause := q.memory.installPause(a.release(), q.now); pause > 0 && !installed {
		return recordLost(a, status, pause)
	}
	target, err := q.targetAs(a.serviceAccount)
	if err != nil {
		return requestFailed(err, q.previousStatus(status))
	}
	outcome, err := q.Deliverer.Ensure(ctx, target, q.desired(in))
	action := actionUpgrade
	if !installed {
		action = actionInstall
	}
	countDelivery(action, outcome, err)
	q.noteProof(a.release(), outcome.Proof)
	q.memory.began.time(a.release(), outcome.Phase, q.now, q.Clock.Now())
	if outcome.Wrote && outcome.Proof != "" && !installed {
		q.memory.installs.Next(a.release().String(), q.now)
	}
	if err != nil {
		return upgradeFailed(err, q.previousStatus(status))
	}
	if outcome.Phase == addonsv1.AddonReady && rendering(q).mayBringKinds(a, record.Kinds, outcome.Kinds) {
		q.workload.conn.InvalidateFacts() // other charts may ask about them
	}
	one := delivered(outcome, status)
	if pause := q.memory.installs.Get(a.release().String()); !installed && pause > firstInstallPause && one.status.Phase == addonsv1.AddonReady {
		return recordLost(a, one.status, pause) // until the watch shows the record
	}
	if !installed {
		one.retryAfter = management.Sooner(one.retryAfter, recordSeenWithin)
	}
	return q.keepReady(ctx, a, record, one)
}

// recordLost returns the result of an add-on whose records don't stay, and that is installed again after the pause.
func recordLost(a *addon, status addonsv1.AddonStatus, pause time.Duration) addonResult {
	one := because(status, reasons.RecordLost, fmt.Sprintf("Its release record in namespace %s of the cluster is gone after each installation; "+
		"see what deletes Secrets with the label owner=helm there. It is installed again after a while", a.release().Namespace))
	one.retryAfter = pause
	return one
}

// recordSeenWithin is when to look at the latest whether the watch of records shows that of an add-on that was
// installed. Its event mostly comes first. A cluster that never sends it would have an add-on that is Ready for ever.
const recordSeenWithin = 10 * time.Second
