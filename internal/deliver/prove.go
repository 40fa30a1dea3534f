// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"errors"
	"slices"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// wantedDigest returns the digest of all inputs, as they are now, or as they were.
func (r revisionMaker) wantedDigest(ctx context.Context) (string, error) {
	if r.want.Recorded {
		recorded, err := r.recorded()
		return recorded.Digest, err
	}
	factsUsed := ""
	if len(r.records) > 0 && r.records[0].Complete {
		factsUsed = r.records[0].FactsUsed
	}
	return r.want.Digest(ctx, factsUsed)
}

// recorded returns the newest proven revision with the wanted spec and inputs.
func (r revisionMaker) recorded() (Summary, error) {
	at := slices.IndexFunc(r.records, func(s Summary) bool {
		return s.Complete && s.Spec == r.want.Spec && s.HasInputs(r.want.Inputs) && !s.Transferred() && s.Status != StatusUninstalling && r.isProven(s)
	})
	if at < 0 {
		return Summary{}, &stopped{r.refusal(addonsv1.AddonPending, ReasonInputReplaced, "No release record has what the revision was made with")}
	}
	return r.records[at], nil
}

// confirmed returns what to do by the newest record. If that can't be proven, or has other values than releases leave to this
// one, a new revision leaves it behind.
func (r revisionMaker) confirmed(ctx context.Context) (step, error) {
	proven, err := r.prove(ctx)
	if err != nil || !proven {
		return stepBegin, err
	}
	d := next(r.records, r.digest, r.want, r.now())
	if d.step != stepResume {
		return d.step, nil
	}
	isOutdated, err := r.knowsOthers(ctx)
	if err != nil || isOutdated {
		return stepBegin, err
	}
	return stepResume, nil
}

// prove reports whether the newest record is proven, or can be: by making the revision once more. Then its
// metadata says what is wanted from now on.
func (r revisionMaker) prove(ctx context.Context) (bool, error) {
	rec, err := r.load(ctx, r.records[0])
	if err != nil || r.believes(rec) {
		return err == nil, err
	}
	made, err := r.makeAgain(ctx, rec)
	if stop, ok := errors.AsType[*stopped](err); ok { // it knew of the revisions before alone
		stop.Outcome = r.withRevision(stop.Outcome)
	}
	if err != nil || made == nil || rec.State == nil {
		return false, err
	}
	adopted := rec.State.Adopted
	if !made.SealAs(rec) || rec.Digest != made.Digest || adopted != nil && adopted.String() != made.Adopts {
		return false, nil
	}
	is := withProgressOf(made.Summary, rec.Summary)
	if is.Proof() != rec.Proof() {
		err := r.rewrite(ctx, rec, is)
		return err == nil, err
	}
	r.records[0], r.proof = is, is.Proof()
	return true, nil
}

// rewrite changes the metadata of the newest record. The caller becomes the owner of the record. The owner shows whether
// another management cluster has the release, too.
func (r revisionMaker) rewrite(ctx context.Context, rec *record.Record, is Summary) error {
	is.OwnerUID = r.want.OwnerUID
	is, err := r.s.store.Rewrite(ctx, rec.Summary, is)
	if err != nil {
		return err
	}
	rec.Summary, r.records[0], r.proof = is, is, is.Proof()
	return nil
}

// makeAgain returns the newest revision as it would be recorded now, nil if it can't be made.
func (r revisionMaker) makeAgain(ctx context.Context, rec *record.Record) (*record.Record, error) {
	all := r.records
	defer func() { r.records = all }()
	r.records = all[1:]
	if !rec.IsRollback() && !r.want.Recorded {
		var generated map[string]string
		if rec.State != nil {
			generated = rec.State.Generated
		}
		made, err := r.make(ctx, rec.Revision, generated)
		if err != nil {
			return nil, err
		}
		return made.rec, nil
	}
	var to Summary
	var failed *Summary
	if rec.IsRollback() {
		if len(r.records) == 0 || !r.isProven(r.records[0]) {
			return nil, nil
		}
		failed = &r.records[0]
		// Its status may have changed since.
		at := slices.IndexFunc(r.records, func(s Summary) bool { return s.IsProvenBy(failed.Previous) })
		if at < 0 {
			return nil, nil
		}
		to = r.records[at]
	} else {
		var err error
		if to, err = r.recorded(); err != nil {
			return nil, err
		}
	}
	old, err := r.load(ctx, to)
	if err != nil || !old.IsIntact() {
		return nil, err
	}
	return r.copyOf(old, rec.Revision, failed), nil
}

// withProgressOf returns what a record says for good, with how far another one of the same revision got.
func withProgressOf(made, record Summary) Summary {
	is := record
	is.Digest, is.Owner, is.Artifact, is.FactsUsed = made.Digest, made.Owner, made.Artifact, made.FactsUsed
	is.Chart, is.Version, is.AppVersion, is.RenewAt = made.Chart, made.Version, made.AppVersion, made.RenewAt
	is.RolledBack, is.Adopts, is.Previous, is.Content = made.RolledBack, made.Adopts, made.Previous, made.Content
	is.Terms = made.Terms
	is.Postconditions = record.Postconditions
	return is
}
