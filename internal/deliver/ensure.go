// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"errors"
	"fmt"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/message"
)

// Ensure takes an add-on as far as it can go now towards what is wanted. It is
// called again whenever Options.Notify asks for it, when Outcome.RetryAfter has
// passed, or when anything changed. One that is installed as wanted costs one
// request, and no write.
//
// The error is for what isn't about this add-on: the cluster couldn't be reached,
// was busy, or another write came first. It is to be retried with backoff.
// Whatever a user can act on is in the Outcome.
func (d *Deliverer) Ensure(ctx context.Context, t Target, want Desired) (Outcome, error) {
	r := d.run(t, want.Release, &want)
	defer r.s.mu.Unlock()
	o, err := r.contained(ctx, r.ensure)
	r.remember(err)
	o.Wrote, o.Message = r.wrote.Load(), message.Redact(o.Message, want.Sensitive)
	if err != nil {
		return o, fmt.Errorf("add-on %s: %w", want.Release, err)
	}
	return o, nil
}

func (r *run) ensure(ctx context.Context) (Outcome, error) {
	if err := r.recall(ctx); err != nil {
		return Outcome{}, err
	}
	factsUsed := ""
	if len(r.records) > 0 && r.records[0].Complete {
		factsUsed = r.records[0].FactsUsed
	}
	digest, err := r.want.Digest(ctx, factsUsed)
	if err != nil {
		return Outcome{}, err
	}
	r.digest = digest
	d := next(r.records, digest, r.want, r.now())
	if d.step == stepSettled {
		r.d.settle(r.t, r.release, r.s)
		return readyOutcome(r.records[0]), nil
	}
	if d.step == stepRolledBack {
		r.d.settle(r.t, r.release, r.s)
		return rolledBackOutcome(r.records[0]), nil
	}
	if o, early := r.s.backoff.waiting(r.now(), r.tried(digest)); early && !r.want.Again && d.step != stepRollBack {
		return o, nil
	}
	if d.step == stepRefuse {
		return r.refuse(digest, d.reason, d.message), nil
	}
	if r.checks, err = readiness.Compile(r.want.Readiness); err != nil {
		return r.refuse(digest, ReasonReadinessInvalid, err.Error()), nil
	}
	prepare := r.resume
	switch d.step {
	case stepBegin:
		prepare = r.begin
	case stepRollBack:
		prepare = r.rollBack
	}
	if o, err := prepare(ctx, digest); o != nil || err != nil {
		return value(o), err
	}
	return r.advance(ctx)
}

// advance takes the revision through its steps, as far as it goes.
func (r *run) advance(ctx context.Context) (Outcome, error) {
	if r.isRollback() {
		r.checks = readiness.Checks{} // those that are wanted may be why it failed
	}
	for _, step := range []func(context.Context) (*Outcome, error){
		r.applyCRDs,
		r.preHooks,
		r.applyObjects,
		r.awaitReady,
		r.postHooks,
		r.awaitPostcondition,
		r.prune,
		r.retireAdopted,
		r.finish,
	} {
		if o, err := step(ctx); o != nil || err != nil {
			return value(o), err
		}
	}
	if r.isRollback() {
		return rolledBackOutcome(r.rec.Summary), nil
	}
	return readyOutcome(r.rec.Summary), nil
}

// errNoState is what is wrong with a record that was Chandler's, and is Helm's alone now.
var errNoState = errors.New("what Chandler keeps beside Helm's record is gone")

// resume goes on with the newest revision.
func (r *run) resume(ctx context.Context, digest string) (*Outcome, error) {
	rec, o, err := r.load(ctx, r.records[0], digest)
	if o != nil || err != nil {
		return o, err
	}
	r.rec = rec
	r.s.turnTo(rec.UID, false)
	if r.s.objects == nil {
		objects, err := record.ParseManifest(rec.Helm.Manifest)
		if err != nil {
			return ptr(r.refuse(digest, ReasonRecordUnreadable, r.unreadable(rec.Summary, err))), nil
		}
		r.scope.learn(rec.CRDs, objects)
		if r.s.crds, err = r.prepare(rec.CRDs); err != nil {
			return nil, err
		}
		if r.s.objects, err = r.prepare(objects); err != nil {
			return nil, err
		}
		r.s.unscoped = r.scope.unknown
	}
	r.scope.learn(r.s.crds, r.s.objects)
	return nil, nil
}

// load reads a record. One that can't be decoded is an outcome, and so is one that had a state
// when the records were listed, and has none now.
func (r *run) load(ctx context.Context, s Summary, digest string) (*record.Record, *Outcome, error) {
	rec, err := r.s.store.Load(ctx, s)
	if err == nil && s.Complete && rec.State == nil {
		return nil, ptr(r.refuse(digest, ReasonRecordUnreadable, r.unreadable(s, errNoState))), nil
	}
	if err == nil {
		if rec.State != nil && rec.State.Adopted != nil {
			r.adopted = rec.State.Adopted
		}
		return rec, nil, nil
	}
	if damaged, ok := errors.AsType[*record.UnreadableError](err); ok {
		return nil, ptr(r.refuse(digest, ReasonRecordUnreadable, r.unreadable(s, damaged))), nil
	}
	return nil, nil, err
}

// unreadable says what is wrong with a record, and what is lost with it.
func (r *run) unreadable(s Summary, err error) string {
	lost := "the add-on is then installed anew, with other generated passwords and certificates, its hooks run again, and objects that only this record names stay in the cluster for ever"
	if r.want == nil {
		lost = "objects that only this record names then stay in the cluster for ever"
	}
	return fmt.Sprintf("Secret %s/%s, the release record, is damaged: %v. Restore it from a backup. Only without one delete it: %s",
		s.Namespace, s.SecretName, err, lost)
}

// readyOutcome is that of an add-on that is installed as wanted.
func readyOutcome(s Summary) Outcome {
	return Outcome{
		Phase: addonsv1.AddonReady, Reason: ReasonReady,
		Version: s.Version, Revision: int32(s.Revision), Digest: s.Digest, Kinds: s.Kinds,
		Total: s.Objects, Ready: s.Objects,
	}
}

func value(o *Outcome) Outcome {
	if o == nil {
		return Outcome{}
	}
	return *o
}

func ptr[T any](v T) *T { return &v }
