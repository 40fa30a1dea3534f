// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"slices"

	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
)

// installation takes a wanted add-on through its steps.
type installation struct{ *call }

// Ensure takes an add-on as far as it can go now towards the wanted state. It is called again
// whenever Options.Notify asks for it, when Outcome.RetryAfter has passed, or when anything
// changed. An add-on that is installed as wanted costs one request, and no write.
//
// The error is for causes that aren't about this add-on: the cluster couldn't be reached, was busy,
// or another write came first. It is to be retried with backoff. Whatever a user can act on is in
// the Outcome.
func (d *Deliverer) Ensure(ctx context.Context, t Target, want Desired) (Outcome, error) {
	return d.within(ctx, t, want.Release, &want, want.Proof, func(r *call) work { return installation{r}.ensure })
}

func (r installation) ensure(ctx context.Context) (Outcome, error) {
	if err := r.recall(ctx); err != nil {
		return Outcome{}, err
	}
	var err error
	if r.digest, err = r.wantedDigest(ctx); err != nil {
		return Outcome{}, err
	}
	d := next(r.records, r.digest, r.want, r.now())
	switch {
	case d.step == stepSettled && r.isProven(r.records[0]):
		return r.settled(readyOutcome(r.records[0])), nil
	case d.step == stepRolledBack:
		return r.settled(rolledBackOutcome(r.records[0], r.now())), nil
	}
	if o, early := r.s.backoff.waiting(r.now(), r.tried(r.digest)); early && !r.want.Again && d.step != stepRollBack {
		return o, nil
	}
	if d.step == stepRefuse {
		return Outcome{}, r.refuse(d.reason, d.message)
	}
	if r.checks, err = readiness.Compile(r.want.Readiness); err != nil {
		return Outcome{}, r.refuse(ReasonReadinessInvalid, err.Error())
	}
	if d.step != stepBegin {
		proven, err := revisionMaker(r).prove(ctx)
		if err != nil {
			return Outcome{}, err
		}
		if d = next(r.records, r.digest, r.want, r.now()); !proven {
			d.step = stepBegin
		}
	}
	if d.step == stepResume {
		isOutdated, err := revisionMaker(r).knowsOthers(ctx)
		if err != nil {
			return Outcome{}, err
		}
		if isOutdated {
			d.step = stepBegin
		}
	}
	if d.step == stepSettled {
		return r.settled(readyOutcome(r.records[0])), nil
	}
	if err := r.prepareStep(ctx, d.step); err != nil {
		return Outcome{}, err
	}
	if r.rec.Status == StatusDeployed { // nothing but facts has changed
		return r.settled(readyOutcome(r.rec.Summary)), nil
	}
	return r.advance(ctx)
}

// wantedDigest returns the digest of all inputs, as they are now, or as they were.
func (r installation) wantedDigest(ctx context.Context) (string, error) {
	if r.want.Recorded {
		recorded, err := revisionMaker(r).recorded()
		return recorded.Digest, err
	}
	factsUsed := ""
	if len(r.records) > 0 && r.records[0].Complete {
		factsUsed = r.records[0].FactsUsed
	}
	return r.want.Digest(ctx, factsUsed)
}

// prepareStep makes or loads the revision that is to be worked on.
func (r installation) prepareStep(ctx context.Context, s step) error {
	switch s {
	case stepBegin:
		if err := hookRunner(r).awaitRunningHooks(ctx); err != nil {
			return err
		}
		if r.want.Recorded {
			return revisionMaker(r).restore(ctx)
		}
		return revisionMaker(r).begin(ctx)
	case stepRollBack:
		return revisionMaker(r).rollBack(ctx)
	default:
		return r.resume(ctx)
	}
}

// advance takes the revision through its steps, as far as it goes.
func (r installation) advance(ctx context.Context) (Outcome, error) {
	if r.rec.IsRollback() {
		r.checks = readiness.Checks{} // those that are wanted may be why it failed
	}
	before, after, _ := r.hookEvents()
	application := &application{call: r.call, transferred: map[Release]bool{}}
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { return application.applyAll(ctx, r.s.crds, true) }, // before anything else, as Helm does
		func(ctx context.Context) error { return hookRunner(r).runHooks(ctx, before) },
		application.applyObjects,
		func(ctx context.Context) error { return r.prune(ctx, r.want.PruneEarly) },
		readinessWait(r).awaitReady,
		func(ctx context.Context) error { return hookRunner(r).runHooks(ctx, after) },
		readinessWait(r).awaitPostcondition,
		func(ctx context.Context) error { return r.prune(ctx, true) },
		adoptedRelease(r).retireAdopted,
		r.finish,
	} {
		if err := step(ctx); err != nil {
			return Outcome{}, err
		}
	}
	if r.rec.IsRollback() {
		return r.settled(rolledBackOutcome(r.rec.Summary, r.now())), nil
	}
	o := readyOutcome(r.rec.Summary)
	o.Found = make(map[ObjectKey]observe.Status, len(r.s.applied))
	for key, a := range r.s.applied {
		o.Found[key] = r.statusOf(a)
	}
	return r.settled(o), nil
}

// resume continues with the newest revision.
func (r installation) resume(ctx context.Context) error {
	rec, err := r.load(ctx, r.records[0])
	if err != nil {
		return err
	}
	r.rec = rec
	r.s.turnTo(rec.UID, false)
	if r.s.objects == nil {
		objects, err := rec.Manifest()
		if err != nil {
			return err
		}
		crds, objects, err := r.scope.PrepareBoth(rec.CRDs, objects)
		if err != nil {
			return err
		}
		r.s.keep(crds, objects)
		r.s.unscoped = r.scope.Unknown
		if err := r.fits(int(r.s.size())); err != nil {
			return err
		}
	}
	r.scope.Learn(slices.Concat(r.s.crds, r.s.objects))
	return nil
}
