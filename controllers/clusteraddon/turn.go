// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"maps"
	"slices"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/checks"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/inputs"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// delivery installs and upgrades the add-ons that are wanted.
type delivery struct{ *clusterRun }

// ensureAll takes each wanted add-on as far as it can go, and returns those that may take objects over.
func (q delivery) ensureAll(ctx context.Context) (all result, successors []*wanted.Addon) {
	holder := releaseHolders(q.wanted, q.installed, q.unresolved, q.ca.Spec.Stacks)
	ready := map[string]bool{} // "stack/name"
	maps.Copy(ready, q.absent) // what isn't there now holds nobody
	for i := range q.wanted {
		a := &q.wanted[i]
		one := q.ensure(ctx, q.turnOf(a, holder[a.Release()], all.unreachable, ready))
		if mayTakeOver(one) {
			successors = append(successors, a)
		}
		// An add-on that waits for a point of an upgrade, or until its stack is resumed, runs as it was.
		runs := (wanted.IsHeldBack(one.status.Reason) || one.status.Reason == reasons.StackPaused) && q.installed[a.Release()].Status == deliver.StatusDeployed
		ready[a.Qualified()] = wanted.IsInstalled(one.status.Phase) || runs
		all.add(one)
	}
	return all, successors
}

// ensure takes one add-on as far as it can go: it finds out what the decision needs, and acts on the decision.
func (q delivery) ensure(ctx context.Context, t *turn) (one addonResult) {
	defer q.contain(ctx, t.status, &one)
	for {
		switch step := t.facts.Step(); step {
		case decide.Compare:
			q.compare(ctx, t)
		case decide.CheckPrecondition:
			q.checkPrecondition(ctx, t)
		default:
			return q.act(ctx, t, step)
		}
	}
}

// installedStatus returns the status of a wanted add-on with what its record says.
func (q delivery) installedStatus(a *wanted.Addon) addonsv1.AddonStatus {
	status := a.Status()
	record, installed := q.installed[a.Release()]
	if !installed {
		return status
	}
	releases.Describe(&status, record)
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

// turn is all that a reconcile knows of one wanted add-on, for its decision.
type turn struct {
	addon  *wanted.Addon
	facts  decide.Wanted
	record deliver.Summary
	// status is the add-on's with what its record says.
	status addonsv1.AddonStatus
	// holder is the stack that has the release.
	holder string
	// missing is the first add-on of dependsOn that isn't ready, "" if all are.
	missing string

	in *inputs.Inputs
	// err is why the inputs can't be had, or a condition can't be evaluated.
	err error
	// unmet is the condition that the add-on waits for.
	unmet *checks.Unmet
	// holdReason and holdMessage say why its change waits for an upgrade of Kubernetes.
	holdReason, holdMessage string
	// written is the result of the write of the record's terms.
	written addonResult
}

// turnOf gathers what is known of an add-on without a request. Ready are the add-ons that others may depend on.
func (q delivery) turnOf(a *wanted.Addon, holder string, unreachable bool, ready map[string]bool) *turn {
	record, installed := q.installed[a.Release()]
	t := &turn{addon: a, record: record, status: q.installedStatus(a), holder: holder}
	if at := slices.IndexFunc(a.DependsOn, func(d string) bool { return !ready[stack.Qualified(a.Stack, d)] }); at >= 0 {
		t.missing = a.DependsOn[at]
	}
	t.facts = decide.Wanted{
		Unreachable:       unreachable,
		Outdated:          a.Outdated,
		Taken:             holder != a.Stack,
		LacksAccount:      q.RequireImpersonation && a.Spec.ServiceAccountName == "",
		Incompatible:      a.Incompatible != "",
		Installed:         installed,
		Paused:            a.Paused,
		RemovalHeld:       stack.Assigned(q.ca.Spec.Stacks, a.Stack).HeldRemoval != nil,
		DependencyMissing: t.missing != "",
	}
	return t
}

// compare resolves the inputs, compares them with those of the record, and brings the record's terms up to date.
func (q delivery) compare(ctx context.Context, t *turn) {
	if err := q.terms().Write(ctx, t.record, q.resolve(ctx, t)); err != nil {
		t.written = upgradeFailed(err, q.previousStatus(t.status))
	}
	t.facts.Unreachable = t.written.unreachable
}

// resolve resolves the inputs, and compares them with those of the record. It returns the terms that the record is to have.
func (q delivery) resolve(ctx context.Context, t *turn) (terms deliver.Terms) {
	var settled bool
	if t.err = q.reader().CheckPinned(ctx, t.addon); t.err == nil {
		t.in, t.err = q.reader().Of(ctx, t.addon, t.record)
	}
	if t.err == nil {
		settled, t.err = q.renderer().Settled(ctx, t.in, t.record)
	}
	terms = termsOf(t.addon, t.record, t.in, settled)
	if settled {
		if t.unmet, t.err = q.unmetPostcondition(ctx, t.addon, t.record); t.unmet == nil && t.err == nil {
			terms.Postconditions = t.addon.PostconditionsDigest()
		}
	}
	if t.addon.Paused {
		terms = t.record.Terms // a pause keeps the record as it is
	}
	switch {
	case inputs.IsReplaced(t.err):
		t.facts.Comparison, t.in = decide.Replaced, &inputs.Inputs{Addon: t.addon, Recorded: true}
		t.facts.AsWanted = t.addon.IsInstalledAs(t.record) && q.proofs.Prove(t.record)
	case t.err != nil:
		t.facts.Comparison = decide.Unreadable
		return terms
	case settled:
		t.facts.Comparison, t.facts.Postcondition = decide.Same, checked(t.unmet)
		return terms
	default:
		t.facts.Comparison = decide.Different
	}
	t.holdReason, t.holdMessage = q.gate().heldBack(t.addon, t.record)
	t.facts.HeldBack = t.holdReason != ""
	return terms
}

// checkPrecondition finds out whether the add-on may be installed or upgraded now.
func (q delivery) checkPrecondition(ctx context.Context, t *turn) {
	unmet, err := q.unmetPrecondition(ctx, t.in, t.record)
	if unmet == nil && err == nil && t.facts.Comparison == decide.Different && q.changesInputsAlone(t) {
		unmet, err = q.awaitTurn(ctx, t.addon)
	}
	if t.facts.Precondition = checked(unmet); err != nil {
		t.facts.Precondition, t.err = decide.Failed, err
	}
	t.unmet = unmet
	t.facts.RecordLost = q.memory.installPause(t.addon.Release(), q.now) > 0
}

// checked returns the result of a check that found a condition unmet, or none.
func checked(unmet *checks.Unmet) decide.Check {
	if unmet != nil {
		return decide.False
	}
	return decide.True
}
