// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"strings"

	helmcommon "helm.sh/helm/v4/pkg/release/common"

	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/message"
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
	return d.within(ctx, t, want.Release, &want, want.Proof, func(ctx context.Context, r *call) (Outcome, error) {
		return installation{r}.ensure(ctx)
	})
}

func (r installation) ensure(ctx context.Context) (Outcome, error) {
	if err := r.recall(ctx); err != nil {
		return Outcome{}, err
	}
	var err error
	if r.digest, err = revisionMaker(r).wantedDigest(ctx); err != nil {
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
		if d.step, err = revisionMaker(r).confirmed(ctx); err != nil {
			return Outcome{}, err
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

// prepareStep makes or loads the revision that is to be worked on.
func (r installation) prepareStep(ctx context.Context, s step) error {
	switch s {
	case stepBegin:
		if err := hookRunner(r).awaitRunningHooks(ctx); err != nil {
			return err
		}
		if !r.want.Recorded {
			return revisionMaker(r).begin(ctx)
		}
		to, err := revisionMaker(r).recorded()
		if err != nil {
			return err
		}
		return revisionMaker(r).repeat(ctx, to, nil)
	case stepRollBack:
		failed := r.records[0]
		to, _ := deployedBefore(r.records, r.want)
		return revisionMaker(r).repeat(ctx, to, &failed)
	default:
		return r.resume(ctx)
	}
}

// advance takes the revision through its steps, as far as it goes.
func (r installation) advance(ctx context.Context) (Outcome, error) {
	if r.rec.IsRollback() {
		r.checks = readiness.Checks{} // those that are wanted may be why it failed
	}
	before, after, _ := hookRunner(r).events()
	application := &application{call: r.call}
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { return application.applyAll(ctx, true) }, // before anything else, as Helm does
		func(ctx context.Context) error { return hookRunner(r).runHooks(ctx, before) },
		func(ctx context.Context) error { return application.applyAll(ctx, false) },
		func(ctx context.Context) error { return deletion(r).prune(ctx, r.want.PruneEarly) },
		readinessWait(r).awaitReady,
		func(ctx context.Context) error { return hookRunner(r).runHooks(ctx, after) },
		readinessWait(r).awaitPostcondition,
		func(ctx context.Context) error { return deletion(r).prune(ctx, true) },
		r.retireAdopted,
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

// retireAdopted deletes the records of the release that was taken over.
func (r *call) retireAdopted(ctx context.Context) error {
	adopted := r.rec.State.Adopted
	if adopted == nil {
		return nil
	}
	store := r.previousStore(Release{Namespace: adopted.StorageNamespace, Name: adopted.Name})
	records, err := store.List(ctx)
	if err != nil {
		return err
	}
	for _, s := range records {
		if s.Owned {
			continue
		}
		if err := store.Delete(ctx, s.SecretName); err != nil {
			return err
		}
	}
	r.rec.State.Adopted = nil // which is written with the end of the revision
	return nil
}

// finish marks the revision deployed. The mark comes last, as then nobody looks again.
func (r installation) finish(ctx context.Context) error {
	for _, older := range r.records {
		if older.Revision >= r.rec.Revision {
			continue
		}
		status, description := helmcommon.StatusSuperseded, "Superseded by a newer revision"
		switch {
		case older.Status == StatusDeployed:
		case older.Pending():
			status, description = helmcommon.StatusFailed, "Replaced before it was complete"
		default:
			continue
		}
		if err := r.s.store.SetStatus(ctx, older, status, description); err != nil {
			return err
		}
	}
	_, _, operation := hookRunner(r).events()
	description := operation + " complete"
	if notes := r.rec.State.Notes; len(notes) > 0 {
		description += ". Left: " + strings.Join(notes, "; ")
	}
	r.rec.State.Inventory = r.s.withUIDs(deletion(r).wanted())
	r.rec.Applied = record.SumsOf(r.rec.State.Inventory).String()
	r.rec.State.PreviousSensitive = nil // nothing is left of what had them
	r.rec.CRDs = nil                    // nothing reads them any more
	if !r.rec.IsRollback() {
		r.rec.Postconditions, r.rec.Failure = r.want.Postconditions, ""
	}
	r.rec.SetStatus(helmcommon.StatusDeployed, message.Shorten(description, 1024))
	return r.s.store.Update(ctx, r.rec)
}
