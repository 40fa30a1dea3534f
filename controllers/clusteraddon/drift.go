// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/drift"
	"github.com/cluster-chandler/chandler/internal/fleetwatch"
	"github.com/cluster-chandler/chandler/internal/health"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// driftRepair compares installed add-ons with what they applied, where a watch says that something differs.
type driftRepair struct{ *clusterRun }

// watchObjects has the objects watched of all add-ons that are installed and wanted.
func (q driftRepair) watchObjects() {
	q.watched.Watch(q.workload.Name, q.workload.Conn, q.expected())
}

// expected returns the releases whose objects are watched, with what is expected of them.
func (q driftRepair) expected() map[deliver.Release]fleetwatch.Expected {
	expected := map[deliver.Release]fleetwatch.Expected{}
	for i := range q.wanted {
		a := &q.wanted[i]
		policy, rules := a.DriftRules()
		record, installed := q.installed[a.Release()]
		if !installed || record.Stack != a.Stack || a.Outdated || policy == addonsv1.DriftPolicyIgnore {
			continue
		}
		evaluates := func(kind schema.GroupKind) bool { return health.Evaluates(kind, a.Readiness) }
		expected[a.Release()] = fleetwatch.Expected{
			Applied: record.Applied, Objects: int(record.Objects), Terms: wanted.Hash([]any{policy, rules, a.AdoptionPolicy}), Evaluates: evaluates, Busy: !record.Repairable(),
		}
	}
	return expected
}

// correctDrift repairs changes of an add-on's objects by others, unless the add-on has just been
// upgraded. The parameter one is the add-on's result without the repair.
func (q driftRepair) correctDrift(ctx context.Context, a *wanted.Addon, record deliver.Summary, one addonResult) addonResult {
	policy, rules := a.DriftRules()
	one.status.Drift = q.previousStatus(one.status).Drift
	if policy == addonsv1.DriftPolicyIgnore {
		one.status.Drift = nil
		return one
	}
	if !record.Repairable() || !q.proofs.Prove(record) || one.unreachable || one.status.Revision != int32(record.Revision) {
		return one
	}
	state, memory := q.watched.State(q.workload.Conn, a.Release()), &q.memory.of(a.Release()).drift
	if q.again {
		*memory = newDriftMemory()
	}
	memory.turnTo(record.Revision)
	if state.Differs || memory.isDue(q.now, state) || record.Applied == "" || q.again {
		if !q.memory.repairs.AllowN(q.now, 1) && !q.again {
			one.retryAfter = retry.Sooner(one.retryAfter, time.Second/repairRate)
			return memory.withFailure(one)
		}
		memory.lookAt = q.now.Add(retry.Unanswered)
		one = q.repair(ctx, a, deliver.Repair{
			Release: a.Release(), Proof: q.proofs.Of(a.Release()), Adoption: a.AdoptionPolicy, Ignore: rules,
			Report: policy == addonsv1.DriftPolicyReport, Wait: memory.wait(q.now), Seen: q.seen(a), Values: q.again,
		}, state, one)
	}
	one.retryAfter = retry.Sooner(one.retryAfter, until(memory.lookAt, q.now))
	one.status.Drift = withUnwatched(one.status.Drift, state.Unwatched)
	return memory.withFailure(one)
}

// repair compares the objects with the record, and sets right what is to be set right.
func (q driftRepair) repair(ctx context.Context, a *wanted.Addon, want deliver.Repair, state fleetwatch.State, one addonResult) addonResult {
	memory := &q.memory.of(a.Release()).drift
	done := q.watched.Repairing(q.workload.Conn, a.Release())
	defer done()
	target, err := q.workload.As(a.Spec.ServiceAccountName)
	if err != nil {
		return requestFailed(err, one.status)
	}
	outcome, found, err := q.Deliverer.Repair(ctx, target, want)
	countDelivery(actionRepair, outcome, err)
	if errors.Is(err, deliver.ErrUnproven) {
		q.proofs.Note(a.Release(), "") // so it is made once more
		one.retryAfter = time.Millisecond
		return one
	}
	if err != nil { // the reconcile is tried again, with backoff
		failed := requestFailed(err, one.status)
		failed.followUp = one.and(failed.followUp)
		return failed
	}
	if outcome.Reason == deliver.ReasonWaitingForMemory { // it is installed as before
		memory.lookAt = q.now.Add(outcome.RetryAfter)
		return one
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
	q.recordDrift(&one.status, was, found)
	return one
}

// seen returns what watches show of an add-on's objects; nil if all of them are to be read.
func (q driftRepair) seen(a *wanted.Addon) func(deliver.ObjectKey) (drift.Fields, bool) {
	if policy, _ := a.DriftRules(); q.again || policy == addonsv1.DriftPolicyIgnore {
		return nil
	}
	return q.watched.Seen(q.workload.Conn, a.Release())
}

// withFailure returns the result with the failure of the last repair. A failed upgrade comes first.
func (m *driftMemory) withFailure(one addonResult) addonResult {
	if m.failed != nil && one.status.Phase == addonsv1.AddonReady {
		one.status.Phase, one.status.Reason, one.status.Message = m.failed.Phase, m.failed.Reason, shorten(m.failed.Message)
	}
	return one
}
