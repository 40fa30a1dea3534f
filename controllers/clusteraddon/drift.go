// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"errors"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/workload"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/drift"
	"github.com/cluster-chandler/chandler/internal/fleetwatch"
	"github.com/cluster-chandler/chandler/internal/health"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// driftRepair compares an installed add-on with what it applied, where a watch says that something differs.
type driftRepair struct {
	deliverer *deliver.Deliverer
	watched   *fleetwatch.Objects
	workload  workload.Cluster
	addon     *wanted.Addon
	memory    *driftMemory
	limiter   *rate.Limiter // of the cluster
	proofs    *releases.Proofs
	again     bool // a person asked for it
	now       time.Time
	record    func(event)
}

// expectedObjects returns the releases whose objects are watched, with what is expected of them.
func expectedObjects(all []wanted.Addon, installed map[deliver.Release]deliver.Summary) map[deliver.Release]fleetwatch.Expected {
	expected := map[deliver.Release]fleetwatch.Expected{}
	for i := range all {
		a := &all[i]
		policy, rules := a.DriftRules()
		record, isInstalled := installed[a.Release()]
		if !isInstalled || record.Stack != a.Stack || a.Outdated || policy == addonsv1.DriftPolicyIgnore {
			continue
		}
		evaluates := func(kind schema.GroupKind) bool { return health.Evaluates(kind, a.Readiness) }
		expected[a.Release()] = fleetwatch.Expected{
			Applied: record.Applied, Objects: int(record.Objects), Terms: wanted.Hash([]any{policy, rules, a.AdoptionPolicy}), Evaluates: evaluates, Busy: !record.Repairable(),
		}
	}
	return expected
}

// correct repairs changes of the add-on's objects by others, unless the add-on has just been upgraded. It writes the drift into
// the result, and returns how the last repair failed, nil if it didn't.
func (q driftRepair) correct(ctx context.Context, record deliver.Summary, one *addonResult) *decide.Said {
	policy, rules := q.addon.DriftRules()
	if policy == addonsv1.DriftPolicyIgnore {
		one.status.Drift = nil
		return nil
	}
	if !record.Repairable() || !q.proofs.Prove(record) || one.unreachable || one.status.Revision != int32(record.Revision) {
		return nil
	}
	state := q.watched.State(q.workload.Conn, q.addon.Release())
	if q.again {
		*q.memory = newDriftMemory()
	}
	q.memory.turnTo(record.Revision)
	if state.Differs || q.memory.isDue(q.now, state) || record.Applied == "" || q.again {
		if !q.limiter.AllowN(q.now, 1) && !q.again {
			one.retryAfter = retry.Sooner(one.retryAfter, time.Second/repairRate)
			return q.memory.said()
		}
		q.memory.lookAt = q.now.Add(retry.Unanswered)
		q.repair(ctx, deliver.Repair{
			Release: q.addon.Release(), Proof: q.proofs.Of(q.addon.Release()), Adoption: q.addon.AdoptionPolicy, Ignore: rules,
			Report: policy == addonsv1.DriftPolicyReport, Wait: q.memory.wait(q.now), Seen: q.seen(), Values: q.again,
		}, state, one)
	}
	one.retryAfter = retry.Sooner(one.retryAfter, until(q.memory.lookAt, q.now))
	one.status.Drift = withUnwatched(one.status.Drift, state.Unwatched)
	return q.memory.said()
}

// repair compares the objects with the record, and sets right what is to be set right.
func (q driftRepair) repair(ctx context.Context, want deliver.Repair, state fleetwatch.State, one *addonResult) {
	a, memory := q.addon, q.memory
	done := q.watched.Repairing(q.workload.Conn, a.Release())
	defer done()
	target, err := q.workload.As(a.Spec.ServiceAccountName)
	if err != nil {
		one.requestErr = err
		return
	}
	outcome, found, err := q.deliverer.Repair(ctx, target, want)
	countDelivery(actionRepair, outcome, err)
	if errors.Is(err, deliver.ErrUnproven) {
		q.proofs.Note(a.Release(), "") // so it is made once more
		one.retryAfter = time.Millisecond
		return
	}
	if err != nil { // the reconcile is tried again, with backoff
		one.requestErr = err
		return
	}
	if outcome.Reason == deliver.ReasonWaitingForMemory { // it is installed as before
		memory.lookAt = q.now.Add(outcome.RetryAfter)
		return
	}
	memory.failed, memory.lookAt = nil, time.Time{}
	again := time.Duration(0)
	if outcome.Phase != addonsv1.AddonReady && outcome.Reason != "" {
		memory.failed, again = &outcome, outcome.RetryAfter
	}
	isPolled := len(state.Unwatched) > 0
	for _, d := range found {
		isPolled = isPolled || d.Differs() // no event tells that somebody sets it right by hand
		again = retry.Sooner(again, d.Wait)
	}
	if isPolled {
		again = retry.Sooner(again, wait.Jitter(checkInterval, 0.2))
	}
	if again > 0 {
		memory.lookAt = q.now.Add(again)
	}
	q.watched.Accept(q.workload.Conn, a.Release(), found)
	memory.note(q.now, found)
	countDrift(found)
	was := one.status.Drift
	one.status.Drift = driftStatus(was, found, memory, object.FieldManager(a.Release()), q.now)
	q.tell(&one.status, was, found)
}

// seen returns what watches show of the add-on's objects; nil if all of them are to be read.
func (q driftRepair) seen() func(deliver.ObjectKey) (drift.Fields, bool) {
	if policy, _ := q.addon.DriftRules(); q.again || policy == addonsv1.DriftPolicyIgnore {
		return nil
	}
	return q.watched.Seen(q.workload.Conn, q.addon.Release())
}

// said returns how the last repair failed, nil if it didn't.
func (m *driftMemory) said() *decide.Said {
	if m.failed == nil {
		return nil
	}
	return &decide.Said{Phase: m.failed.Phase, Reason: m.failed.Reason, Message: m.failed.Message}
}
