// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"slices"

	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// WantedDigest returns the digest of all inputs, as they are now, or as they were.
func (m *Maker) WantedDigest(ctx context.Context) (string, error) {
	if m.Want.Recorded {
		recorded, err := m.Recorded()
		return recorded.Digest, err
	}
	factsUsed := ""
	if len(m.Past.Records) > 0 && m.Past.Records[0].Complete {
		factsUsed = m.Past.Records[0].FactsUsed
	}
	return m.Want.Digest(ctx, factsUsed)
}

// Recorded returns the newest proven revision with the wanted spec and inputs.
func (m *Maker) Recorded() (record.Summary, error) {
	at := slices.IndexFunc(m.Past.Records, func(s record.Summary) bool {
		return s.Complete && s.Spec == m.Want.Spec && s.HasInputs(m.Want.Inputs) && !s.Transferred() && s.Status != record.StatusUninstalling && m.Past.IsProven(s)
	})
	if at < 0 {
		refusal := failure.New(ReasonInputReplaced, "No release record has what the revision was made with")
		refusal.Wait = true
		return record.Summary{}, refusal
	}
	return m.Past.Records[at], nil
}

// Confirm returns what to do by the newest record, of inputs with this digest. If that can't be proven, or has other values than
// releases leave to this one, a new revision leaves it behind.
func (m *Maker) Confirm(ctx context.Context, digest string) (Step, error) {
	proven, err := m.prove(ctx)
	if err != nil || !proven {
		return Begin, err
	}
	d := Next(m.Past.Records, digest, m.Want, m.Clock.Now())
	if d.Step != Resume {
		return d.Step, nil
	}
	isOutdated, err := m.knowsOthers(ctx)
	if err != nil || isOutdated {
		return Begin, err
	}
	return Resume, nil
}

// prove reports whether the newest record is proven, or can be: by making the revision once more. Then its
// metadata says what is wanted from now on.
func (m *Maker) prove(ctx context.Context) (bool, error) {
	rec, err := m.Past.Load(ctx, m.Past.Records[0])
	if err != nil || m.Past.Believes(rec) {
		return err == nil, err
	}
	made, err := m.makeAgain(ctx, rec)
	if err != nil || made == nil || rec.State == nil {
		return false, err
	}
	adopted := rec.State.Adopted
	if !made.SealAs(rec) || rec.Digest != made.Digest || adopted != nil && adopted.String() != made.Adopts {
		return false, nil
	}
	is := withProgressOf(made.Summary, rec.Summary)
	if is.Proof() != rec.Proof() {
		err := m.rewrite(ctx, rec, is)
		return err == nil, err
	}
	m.Past.Records[0], m.Past.Proof = is, is.Proof()
	return true, nil
}

// rewrite changes the metadata of the newest record. The caller becomes the owner of the record. The owner shows whether
// another management cluster has the release, too.
func (m *Maker) rewrite(ctx context.Context, rec *record.Record, is record.Summary) error {
	is.OwnerUID = m.Want.OwnerUID
	is, err := m.Past.Store.Rewrite(ctx, rec.Summary, is)
	if err != nil {
		return err
	}
	rec.Summary, m.Past.Records[0], m.Past.Proof = is, is, is.Proof()
	return nil
}

// makeAgain returns the newest revision as it would be recorded now, nil if it can't be made.
func (m *Maker) makeAgain(ctx context.Context, rec *record.Record) (*record.Record, error) {
	past := *m.Past
	past.Records = m.Past.Records[1:]
	defer func() { m.Past.Adopted = past.Adopted }()
	again := *m
	again.Past = &past
	if !rec.IsRollback() && !m.Want.Recorded {
		var given job.Generated
		if rec.State != nil {
			given = rec.State.Generated
		}
		made, err := again.make(ctx, rec.Revision, nil, given)
		if err != nil {
			return nil, err
		}
		return made.Record, nil
	}
	to, failed, err := again.repeated(rec)
	if err != nil || to.Revision == 0 {
		return nil, err
	}
	old, err := past.Load(ctx, to)
	if err != nil || !old.IsIntact() {
		return nil, err
	}
	return again.copyOf(old, rec.Revision, failed), nil
}

// repeated returns which record the newest one is made of, zero for none, and whose rollback it is.
func (m *Maker) repeated(rec *record.Record) (to record.Summary, failed *record.Summary, err error) {
	if !rec.IsRollback() {
		to, err = m.Recorded()
		return to, nil, err
	}
	if len(m.Past.Records) == 0 || !m.Past.IsProven(m.Past.Records[0]) {
		return to, nil, nil
	}
	failed = &m.Past.Records[0]
	// Its status may have changed since.
	if at := slices.IndexFunc(m.Past.Records, func(s record.Summary) bool { return s.IsProvenBy(failed.Previous) }); at >= 0 {
		to = m.Past.Records[at]
	}
	return to, failed, nil
}

// withProgressOf returns what a record says for good, with how far another one of the same revision got.
func withProgressOf(made, recorded record.Summary) record.Summary {
	is := recorded
	is.Digest, is.Owner, is.Artifact, is.FactsUsed = made.Digest, made.Owner, made.Artifact, made.FactsUsed
	is.Chart, is.Version, is.AppVersion, is.RenewAt = made.Chart, made.Version, made.AppVersion, made.RenewAt
	is.RolledBack, is.Adopts, is.Previous, is.Content = made.RolledBack, made.Adopts, made.Previous, made.Content
	is.Terms = made.Terms
	is.Postconditions = recorded.Postconditions
	return is
}
