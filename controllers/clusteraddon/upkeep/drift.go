// SPDX-License-Identifier: Apache-2.0

// Package upkeep keeps an installed add-on as it was applied: it repairs what others changed, and evaluates the health of workloads.
package upkeep

import (
	"context"
	"errors"
	"strings"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/result"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/workload"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/drift"
	"github.com/cluster-chandler/chandler/internal/fleetwatch"
	"github.com/cluster-chandler/chandler/internal/health"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// Repair compares an installed add-on with what it applied, where a watch says that something differs.
type Repair struct {
	Deliverer *deliver.Deliverer
	Watched   *fleetwatch.Objects
	Workload  workload.Cluster
	Addon     *wanted.Addon
	Memory    *DriftMemory
	Limiter   *rate.Limiter // of the cluster
	Proofs    *releases.Proofs
	Again     bool // a person asked for it
	Now       time.Time
}

// Expected returns the releases whose objects are watched, with what is expected of them.
func Expected(all []wanted.Addon, installed map[deliver.Release]deliver.Summary) map[deliver.Release]fleetwatch.Expected {
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

// Correct repairs changes of the add-on's objects by others, unless the add-on has just been upgraded. It writes the drift into
// the result, and returns how the last repair failed, nil if it didn't. The error is of a request, to be tried again.
func (q Repair) Correct(ctx context.Context, record deliver.Summary, one *result.Addon) (failed *decide.Said, err error) {
	policy, rules := q.Addon.DriftRules()
	if policy == addonsv1.DriftPolicyIgnore {
		one.Status.Drift = nil
		return nil, nil
	}
	if !record.Repairable() || !q.Proofs.Prove(record) || one.Unreachable || one.Status.Revision != int32(record.Revision) {
		return nil, nil
	}
	state := q.Watched.State(q.Workload.Conn, q.Addon.Release())
	if q.Again {
		*q.Memory = DriftMemory{}
	}
	q.Memory.TurnTo(record.Revision)
	if state.Differs || q.Memory.IsDue(q.Now, state) || record.Applied == "" || q.Again {
		if !q.Limiter.AllowN(q.Now, 1) && !q.Again {
			one.RetryAfter = retry.Sooner(one.RetryAfter, time.Second/RepairRate)
			return q.Memory.said(), nil
		}
		q.Memory.LookAt(q.Now.Add(retry.Unanswered))
		err = q.repair(ctx, deliver.Repair{
			Release: q.Addon.Release(), Proof: q.Proofs.Of(q.Addon.Release()), Newest: record.SecretName, Adoption: q.Addon.AdoptionPolicy, Ignore: rules,
			Report: policy == addonsv1.DriftPolicyReport, Wait: q.Memory.wait(q.Now), Seen: q.Seen(), Values: q.Again,
		}, state, one)
	}
	one.RetryAfter = retry.Sooner(one.RetryAfter, result.Until(q.Memory.lookAt, q.Now))
	one.Status.Drift = WithUnwatched(one.Status.Drift, state.Unwatched)
	return q.Memory.said(), err
}

// repair compares the objects with the record, and sets right what is to be set right.
func (q Repair) repair(ctx context.Context, want deliver.Repair, state fleetwatch.State, one *result.Addon) error {
	a, memory := q.Addon, q.Memory
	done := q.Watched.Repairing(q.Workload.Conn, a.Release())
	defer done()
	target, err := q.Workload.As(a.Spec.ServiceAccountName)
	if err != nil {
		return err
	}
	outcome, found, err := q.Deliverer.Repair(ctx, target, want)
	one.Delivers(result.Repair, outcome, err)
	if errors.Is(err, deliver.ErrUnproven) {
		q.Proofs.Note(a.Release(), "") // so it is made once more
		one.RetryAfter = time.Millisecond
		return nil
	}
	if err != nil { // the reconcile is tried again, with backoff
		return err
	}
	if outcome.Reason == deliver.ReasonWaitingForMemory { // it is installed as before
		memory.LookAt(q.Now.Add(outcome.RetryAfter))
		return nil
	}
	memory.failed = nil
	memory.LookAt(time.Time{})
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
		memory.LookAt(q.Now.Add(again))
	}
	q.Watched.Accept(q.Workload.Conn, a.Release(), found)
	memory.Note(q.Now, found)
	for _, d := range found {
		switch {
		case d.Repaired:
			one.Repaired++
		case d.Differs():
			one.Left++
		}
	}
	was := one.Status.Drift
	one.Status.Drift = DriftStatus(was, found, memory.IsFought, object.FieldManager(a.Release()), q.Now)
	if one.Repaired > 0 {
		one.Changed(one.Status, addonsv1.ChangeRepaired, one.Status.Version, one.Status.Version, int(one.Status.Revision))
		one.Changes[len(one.Changes)-1].By = strings.Join(one.Status.Drift.LastManagers, ", ")
	}
	if e := DriftEvent(one.Status, was, found); e != nil {
		one.Events = append(one.Events, *e)
	}
	return nil
}

// Seen returns what watches show of the add-on's objects; nil if all of them are to be read.
func (q Repair) Seen() func(deliver.ObjectKey) (drift.Fields, bool) {
	if policy, _ := q.Addon.DriftRules(); q.Again || policy == addonsv1.DriftPolicyIgnore {
		return nil
	}
	return q.Watched.Seen(q.Workload.Conn, q.Addon.Release())
}

// said returns how the last repair failed, nil if it didn't.
func (m *DriftMemory) said() *decide.Said {
	if m.failed == nil {
		return nil
	}
	return &decide.Said{Phase: m.failed.Phase, Reason: m.failed.Reason, Message: m.failed.Message}
}
