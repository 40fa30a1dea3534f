// SPDX-License-Identifier: Apache-2.0

// Package delivery installs and upgrades the add-ons that are wanted on a cluster, and keeps those that are installed.
package delivery

import (
	"context"
	"slices"
	"sync/atomic"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/checks"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/gather"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/inputs"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/memory"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/rendering"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/result"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/upgradegate"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/workload"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/together"
	"github.com/cluster-chandler/chandler/internal/fleetwatch"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// Delivery installs and upgrades the add-ons that are wanted on one cluster.
type Delivery struct {
	*gather.Observed
	Inputs    inputs.Reader
	Renderer  rendering.Renderer
	Deliverer *deliver.Deliverer
	Workload  workload.Cluster
	Watched   *fleetwatch.Objects
	Proofs    *releases.Proofs
	Memory    *memory.Addons
	// Turns limit how many clusters of a stack get other inputs at once. Others are all clusters.
	Turns  *InputTurns
	Others client.Reader
	// Beside is the room for add-ons that are worked on at the same time.
	Beside *Beside
	// installs are the wanted add-ons without a record, and woken reports whether one that waited can go on.
	installs *together.Installs
	woken    func() bool
	// Leaving are the releases whose objects wanted add-ons may take over.
	Leaving []deliver.Release
	// NeedsAccount says that the instance delivers with the rights of ServiceAccounts alone.
	NeedsAccount bool
	Clock        clock.PassiveClock
}

// Ensure takes each wanted add-on as far as it can go, and returns those that may take objects over.
func (q Delivery) Ensure(ctx context.Context) (all result.All, successors []*wanted.Addon) {
	holder := Holders(q.Wanted, q.Installed, q.Unresolved, q.ClusterAddon.Spec.Stacks)
	q.installs, q.woken = together.New(q.unrecorded()), q.Deliverer.Woken(q.Workload.Name.String())
	at, results, runs, unreachable := q.places(), make([]result.Addon, len(q.Wanted)), make([]bool, len(q.Wanted)), atomic.Bool{}
	q.Beside.Each(len(q.Wanted), func(i int) []int { return at.follows(&q.Wanted[i]) }, func(i int) {
		a := &q.Wanted[i]
		ready := func(other string) bool {
			if j, isWanted := at[other]; isWanted {
				return j < i && runs[j]
			}
			return q.Absent[other] // what isn't there now holds nobody
		}
		one := q.ensure(ctx, q.turnOf(a, holder[a.Release()], unreachable.Load(), ready))
		if one.Unreachable {
			unreachable.Store(true)
		}
		// An add-on that waits for a point of an upgrade, or until its stack is resumed, runs as it was.
		asItWas := (wanted.IsHeldBack(one.Status.Reason) || one.Status.Reason == reasons.StackPaused) && q.Installed[a.Release()].Status == deliver.StatusDeployed
		results[i], runs[i] = one, wanted.IsInstalled(one.Status.Phase) || asItWas
	})
	for i, one := range results {
		if MayTakeOver(one) {
			successors = append(successors, &q.Wanted[i])
		}
		all.Add(one)
	}
	return all, successors
}

// unrecorded returns the releases of wanted add-ons of which no record was seen.
func (q Delivery) unrecorded() (releases []deliver.Release) {
	for i := range q.Wanted {
		if _, installed := q.Installed[q.Wanted[i].Release()]; !installed {
			releases = append(releases, q.Wanted[i].Release())
		}
	}
	return releases
}

// ensure takes one add-on as far as it can go: it finds out what the decision needs, and acts on the decision.
func (q Delivery) ensure(ctx context.Context, t *turn) (one result.Addon) {
	defer contain(ctx, q.Workload.Name.String(), t.status, &one)
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
func (q Delivery) installedStatus(a *wanted.Addon) addonsv1.AddonStatus {
	status := a.Status()
	record, installed := q.Installed[a.Release()]
	if !installed {
		return status
	}
	releases.Describe(&status, record)
	if record.Status == deliver.StatusDeployed {
		return status
	}
	// The record of a revision that isn't deployed doesn't tell how many objects are ready.
	switch was := q.previous(status); {
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
	written result.Addon
}

// turnOf gathers what is known of an add-on without a request. Ready says of an add-on, as "stack/name", whether others may depend on it.
func (q Delivery) turnOf(a *wanted.Addon, holder string, unreachable bool, ready func(string) bool) *turn {
	record, installed := q.Installed[a.Release()]
	t := &turn{addon: a, record: record, status: q.installedStatus(a), holder: holder}
	if at := slices.IndexFunc(a.DependsOn, func(d string) bool { return !ready(stack.Qualified(a.Stack, d)) }); at >= 0 {
		t.missing = a.DependsOn[at]
	}
	t.facts = decide.Wanted{
		Unreachable:       unreachable,
		Outdated:          a.Outdated,
		Taken:             holder != a.Stack,
		LacksAccount:      q.NeedsAccount && a.Spec.ServiceAccountName == "",
		Incompatible:      a.Incompatible != "",
		Installed:         installed,
		Paused:            a.Paused,
		RemovalHeld:       stack.Assigned(q.ClusterAddon.Spec.Stacks, a.Stack).HeldRemoval != nil,
		DependencyMissing: t.missing != "",
	}
	return t
}

// compare resolves the inputs, compares them with those of the record, and brings the record's terms up to date.
func (q Delivery) compare(ctx context.Context, t *turn) {
	if err := q.terms().Write(ctx, t.record, q.resolve(ctx, t)); err != nil {
		t.written = result.UpgradeFailed(err, q.previous(t.status))
	}
	t.facts.Unreachable = t.written.Unreachable
}

// resolve resolves the inputs, and compares them with those of the record. It returns the terms that the record is to have.
func (q Delivery) resolve(ctx context.Context, t *turn) (terms deliver.Terms) {
	var settled bool
	if t.err = q.Inputs.CheckPinned(ctx, t.addon); t.err == nil {
		t.in, t.err = q.Inputs.Of(ctx, t.addon, t.record)
	}
	if t.err == nil {
		settled, t.err = q.Renderer.Settled(ctx, t.in, t.record)
	}
	terms = TermsOf(t.addon, t.record, t.in, settled)
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
		t.facts.AsWanted = t.addon.IsInstalledAs(t.record) && q.Proofs.Prove(t.record)
	case t.err != nil:
		t.facts.Comparison = decide.Unreadable
		return terms
	case settled:
		t.facts.Comparison, t.facts.Postcondition = decide.Same, checked(t.unmet)
		return terms
	default:
		t.facts.Comparison = decide.Different
	}
	t.holdReason, t.holdMessage = upgradegate.HeldBack(q.Observed, t.addon, t.record)
	t.facts.HeldBack = t.holdReason != ""
	return terms
}

// checkPrecondition finds out whether the add-on may be installed or upgraded now.
func (q Delivery) checkPrecondition(ctx context.Context, t *turn) {
	unmet, err := UnmetPrecondition(ctx, q.Renderer, q.checks(t.addon), t.in, t.record)
	if unmet == nil && err == nil && t.facts.Comparison == decide.Different && ChangesInputsAlone(q.Observed, q.Proofs, t.in, t.record) {
		unmet, err = q.Turns.Await(ctx, q.Others, q.Observed, t.addon)
	}
	if t.facts.Precondition = checked(unmet); err != nil {
		t.facts.Precondition, t.err = decide.Failed, err
	}
	t.unmet = unmet
	t.facts.RecordLost = q.Memory.InstallPause(t.addon.Release(), q.Now) > 0
}

// checked returns the result of a check that found a condition unmet, or none.
func checked(unmet *checks.Unmet) decide.Check {
	if unmet != nil {
		return decide.False
	}
	return decide.True
}
