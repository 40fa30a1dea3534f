// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"slices"

	"github.com/cluster-chandler/chandler/internal/deliver/hooks"
	"github.com/cluster-chandler/chandler/internal/deliver/install"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/outcome"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/deliver/revision"
	"github.com/cluster-chandler/chandler/internal/failure"
)

// Ensure takes an add-on as far as it can go now towards the wanted state. It is called again
// whenever Options.Notify asks for it, when Outcome.RetryAfter has passed, or when anything
// changed. An add-on that is installed as wanted costs one request, and no write.
//
// The error is for causes that aren't about this add-on: the cluster couldn't be reached, was busy,
// or another write came first. It is to be retried with backoff. Whatever a user can act on is in
// the Outcome.
func (d *Deliverer) Ensure(ctx context.Context, t Target, want Desired) (Outcome, error) {
	return d.within(ctx, t, want.Release, &want, want.Proof, func(ctx context.Context, r *call) (Outcome, error) {
		return r.ensure(ctx)
	})
}

func (r *call) ensure(ctx context.Context) (_ Outcome, err error) {
	if err := r.recall(ctx); err != nil {
		return Outcome{}, err
	}
	maker := r.d.maker(r.t, r.want, r.past)
	if r.digest, err = maker.WantedDigest(ctx); err != nil {
		return Outcome{}, err
	}
	next := revision.Next(r.past.Records, r.digest, r.want, r.now())
	switch {
	case next.Step == revision.Settled && r.past.IsProven(r.past.Records[0]):
		return r.settled(readyOutcome(r.past.Records[0])), nil
	case next.Step == revision.RolledBack:
		return r.settled(rolledBackOutcome(r.past.Records[0], r.now())), nil
	}
	if o, early := r.s.backoff.waiting(r.now(), attemptOf(r.want, r.past.Records, r.digest)); early && !r.want.Again && next.Step != revision.RollBack {
		return o, nil
	}
	if next.Step == revision.Refuse {
		return r.refused(next.Refusal), nil
	}
	if maker.Checks, err = readiness.Compile(r.want.Readiness); err != nil {
		return r.refused(failure.New(ReasonReadinessInvalid, "%s", err.Error())), nil
	}
	if next.Step != revision.Begin {
		if next.Step, err = maker.Confirm(ctx, r.digest); err != nil {
			return Outcome{}, err
		}
	}
	if next.Step == revision.Settled {
		return r.settled(readyOutcome(r.past.Records[0])), nil
	}
	if stop, err := r.prepare(ctx, next.Step, maker); stop.Is() || err != nil {
		return r.ended(ctx, stop, err)
	}
	if r.rec.Status == StatusDeployed { // nothing but facts has changed
		return r.settled(readyOutcome(r.rec.Summary)), nil
	}
	return r.advance(ctx, maker.Checks)
}

// prepare makes or loads the revision that is to be worked on.
func (r *call) prepare(ctx context.Context, step revision.Step, maker *revision.Maker) (_ outcome.Stop, err error) {
	var made *revision.Made
	switch {
	case step == revision.RollBack:
		failed := r.past.Records[0]
		to, _ := revision.DeployedBefore(r.past.Records, r.want)
		made, err = maker.Repeat(ctx, to, &failed)
	case step != revision.Begin:
		return outcome.Stop{}, r.resume(ctx)
	default:
		if stop, err := r.awaitRunningHooks(ctx); stop.Is() || err != nil {
			return stop, err
		}
		if !r.want.Recorded {
			made, err = maker.Begin(ctx)
			break
		}
		var to Summary
		if to, err = maker.Recorded(); err == nil {
			made, err = maker.Repeat(ctx, to, nil)
		}
	}
	if err != nil {
		return outcome.Stop{}, err
	}
	if !made.IsDeployed {
		return outcome.Stop{}, r.record(ctx, maker, made)
	}
	r.rec = made.Record
	return outcome.Stop{}, nil
}

// record records a new revision, which is worked on from then on.
func (r *call) record(ctx context.Context, maker *revision.Maker, made *revision.Made) error {
	if err := maker.Record(ctx, made); err != nil {
		return err
	}
	is := made.Record.Summary
	r.rec, r.recorded = made.Record, &is
	r.s.turnTo(r.rec.UID, false)
	r.s.keep(made.CRDs, made.Objects)
	r.s.install.Unscoped, r.s.install.AsDeployed = r.past.Scope.Unknown, made.Unchanged
	return maker.Trim(ctx)
}

// resume continues with the newest revision.
func (r *call) resume(ctx context.Context) error {
	rec, err := r.past.Load(ctx, r.past.Records[0])
	if err != nil {
		return err
	}
	r.rec = rec
	r.s.turnTo(rec.UID, false)
	if r.s.wanted.Objects == nil {
		crds, err := r.past.Scope.Prepare(rec.CRDs)
		if err != nil {
			return err
		}
		if err := r.past.Memory.Hold(ctx, object.Weight(crds...)); err != nil {
			return err
		}
		objects, _, err := r.past.Manifest(ctx, rec)
		if err != nil {
			return err
		}
		r.s.keep(crds, objects)
		r.s.install.Unscoped = r.past.Scope.Unknown
	}
	r.past.Scope.Learn(slices.Concat(r.s.wanted.CRDs, r.s.wanted.Objects))
	return nil
}

// awaitRunningHooks waits for hooks of the newest revision that run, before there is another one.
func (r *call) awaitRunningHooks(ctx context.Context) (outcome.Stop, error) {
	if len(r.past.Records) == 0 || r.want.Again || !r.past.Records[0].Pending() || !r.past.IsProven(r.past.Records[0]) {
		return outcome.Stop{}, nil
	}
	rec, err := r.past.Load(ctx, r.past.Records[0])
	if err != nil || !r.past.Believes(rec) {
		return outcome.Stop{}, err
	}
	r.rec = rec
	stop, err := r.hooks().AwaitRunning(ctx)
	if !stop.Is() && err == nil {
		r.rec = nil
	}
	return stop, err
}

// advance takes the revision through its steps, as far as it goes.
func (r *call) advance(ctx context.Context, checks readiness.Checks) (Outcome, error) {
	if r.rec.IsRollback() {
		checks = nil // those that are wanted may be why it failed
	}
	before, after, operation := hooks.Events(r.rec, r.past.IsUpgrade(r.rec))
	install := r.install(checks)
	wait := install.Wait
	for _, step := range []func(context.Context) (outcome.Stop, error){
		func(ctx context.Context) (outcome.Stop, error) { return install.Apply(ctx, true) }, // before anything else, as Helm does
		func(ctx context.Context) (outcome.Stop, error) { return r.hooks().Run(ctx, before) },
		func(ctx context.Context) (outcome.Stop, error) { return install.Apply(ctx, false) },
		func(ctx context.Context) (outcome.Stop, error) { return r.prune(ctx, r.want.PruneEarly) },
		wait.AwaitReady,
		func(ctx context.Context) (outcome.Stop, error) { return r.hooks().Run(ctx, after) },
		wait.AwaitPostcondition,
		func(ctx context.Context) (outcome.Stop, error) { return r.prune(ctx, true) },
		func(ctx context.Context) (outcome.Stop, error) {
			return outcome.Stop{}, revision.RetireAdopted(ctx, r.storeOf, r.rec, r.t.Client)
		},
		func(ctx context.Context) (outcome.Stop, error) {
			r.rec.State.Inventory = r.s.applied.WithUIDs(entriesOf(r.rec, r.s.wanted))
			return outcome.Stop{}, revision.Finish(ctx, r.past, r.rec, operation, r.want.Postconditions)
		},
	} {
		stop, err := step(ctx)
		r.applied, r.tried = install.Applied, install.Tried
		if stop.Is() || err != nil {
			return r.ended(ctx, stop, err)
		}
	}
	if r.rec.IsRollback() {
		return r.settled(rolledBackOutcome(r.rec.Summary, r.now())), nil
	}
	o := readyOutcome(r.rec.Summary)
	o.Found = r.s.applied.Statuses()
	return r.settled(o), nil
}

// prune deletes obsolete objects, if it is time to. By default the prune comes last: after all new objects are ready.
func (r *call) prune(ctx context.Context, isTime bool) (outcome.Stop, error) {
	if r.s.pruned || !isTime {
		return outcome.Stop{}, nil
	}
	stop, err := r.pruner(false).Prune(ctx, r.obsolete(), false)
	r.s.pruned = !stop.Is() && err == nil
	return stop, err
}

// obsolete returns what earlier revisions had and this one hasn't, not as a hook either.
func (r *call) obsolete() []record.Entry {
	if r.s.pruned {
		return nil
	}
	before, after, _ := hooks.Events(r.rec, r.past.IsUpgrade(r.rec))
	isHook := hooks.Keys(r.past.Scope, r.rec, before, after)
	return slices.DeleteFunc(record.Minus(r.rec.State.Inventory, entriesOf(r.rec, r.s.wanted)), func(e record.Entry) bool {
		return r.s.applied.Has(e.Key()) || isHook[e.Key()]
	})
}

// entriesOf returns what a revision has. A rollback leaves the CRDs of crds/, which its record doesn't have.
func entriesOf(rec *record.Record, wanted install.Wanted) []record.Entry {
	entries := object.EntriesOf(wanted.CRDs, wanted.Objects)
	if rec.IsRollback() {
		entries = append(entries, slices.DeleteFunc(slices.Clone(rec.State.Inventory), func(e record.Entry) bool { return !e.CRD })...)
	}
	return entries
}
