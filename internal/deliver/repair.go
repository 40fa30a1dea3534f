// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/history"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/deliver/repair"
	"github.com/cluster-chandler/chandler/internal/drift"
)

// Repair is what to look for in a deployed add-on, and what to do about it.
type Repair = repair.Request

// repairRun looks for what differs in a deployed add-on.
type repairRun struct {
	past     *history.History
	repairer repair.Repairer
	found    []repair.Difference
}

// Repair compares the objects of a deployed add-on with what it applied, and applies those
// that differ, and nothing else. It works from the record: nothing is rendered, no revision
// is made, and no source is asked. An add-on that isn't deployed is left to Ensure. CRDs of
// crds/ aren't in the record: they are reported when they are gone. The error is [ErrUnproven]
// if the record is another one than was written.
func (d *Deliverer) Repair(ctx context.Context, t Target, want Repair) (Outcome, []repair.Difference, error) {
	var run repairRun
	o, err := d.within(ctx, t, want.Release, nil, want.Proof, func(ctx context.Context, r *call) (Outcome, error) {
		run = repairRun{past: r.past, repairer: repair.Repairer{Applier: r.applier, Request: want, Hide: r.past.Hidden.In}}
		return r.repair(ctx, &run)
	})
	return o, run.found, err
}

func (r *call) repair(ctx context.Context, run *repairRun) (Outcome, error) {
	if err := r.past.ListAnd(ctx, run.repairer.Newest); err != nil {
		return Outcome{}, err
	}
	if len(r.past.Records) == 0 || !r.past.Records[0].Repairable() {
		return Outcome{}, nil
	}
	r.digest = r.past.Records[0].Digest
	rec, err := r.past.Load(ctx, r.past.Records[0])
	if err == nil && !r.past.Believes(rec) {
		err = ErrUnproven
	}
	if err != nil {
		return Outcome{}, err
	}
	f, err := run.repair(ctx, rec)
	if err != nil {
		return Outcome{}, err
	}
	if noted, err := run.noteFields(ctx, rec); noted || err != nil {
		r.rec = rec
		if err != nil {
			return Outcome{}, err
		}
	}
	ready := readyOutcome(rec.Summary)
	switch {
	case f == nil:
		return r.settled(ready), nil
	case f.Kind == object.Transient:
		return Outcome{}, f.Unwrap()
	case f.Kind == object.Rejected:
		ready.Phase = addonsv1.AddonFailed
	default:
		ready.Phase = addonsv1.AddonUpgrading
	}
	ready.Reason, ready.Message = f.Reason, r.past.Hidden.In(f.Message)
	return r.s.backoff.fail(r.now(), rec.Digest, ready), nil
}

// repair repairs the objects that differ, wave by wave, and returns the worst that came of it, nil for nothing.
func (r *repairRun) repair(ctx context.Context, rec *record.Record) (*object.Failure, error) {
	suspects, err := r.suspects(ctx, rec)
	if err != nil {
		return nil, err
	}
	var failed object.Failures
	for _, wave := range suspects {
		differences := make([]repair.Difference, len(wave))
		failed = append(failed, object.InParallel(len(wave), func(i int) *object.Failure {
			d := &differences[i]
			f := r.past.Hidden.FailureOf(wave[i].Entry.Key(), r.repairer.Repair(ctx, wave[i], d))
			f.OfRepair()
			if f != nil && f.Kind == object.Rejected && r.repairer.Report {
				d.Refused, f = f.Message, nil
			}
			return f
		})...)
		r.found = append(r.found, differences...)
	}
	return failed.Worst(), nil
}

// suspects returns the objects that may differ, wave by wave.
func (r *repairRun) suspects(ctx context.Context, rec *record.Record) ([][]repair.Suspect, error) {
	objects, _, err := r.past.Manifest(ctx, rec)
	if err != nil {
		return nil, err
	}
	inventory, err := r.past.Scope.InventoryOf(rec)
	if err != nil {
		return nil, err
	}
	entries, differ := make(map[record.ObjectKey]record.Entry, len(inventory)), map[record.ObjectKey]bool{}
	for _, e := range inventory {
		if e.Shared || e.UID == "" { // whoever owns it manages it
			continue
		}
		if r.repairer.Seen == nil {
			entries[e.Key()] = e
		} else if seen, known := r.repairer.Seen(e.Key()); !known || seen == 0 || seen != e.Fields {
			entries[e.Key()], differ[e.Key()] = e, known && seen != 0
		}
	}
	var all [][]repair.Suspect
	for _, wave := range object.Waves(objects) {
		var here []repair.Suspect
		for _, o := range wave {
			e, ok := entries[record.KeyOf(o)]
			delete(entries, record.KeyOf(o))
			if ok && !readiness.IsJob(o) { // which may be gone once it ran to its end
				here = append(here, repair.Suspect{Manifest: o, Entry: e, Differs: differ[record.KeyOf(o)]})
			}
		}
		all = append(all, here)
	}
	var crds []repair.Suspect
	for _, e := range entries {
		if e.CRD {
			crds = append(crds, repair.Suspect{Entry: e})
		}
	}
	return append(all, crds), nil
}

// noteFields brings the record up to date with the fields of objects that are as the manifest
// says, and reports whether there were any.
func (r *repairRun) noteFields(ctx context.Context, rec *record.Record) (noted bool, _ error) {
	now := map[record.ObjectKey]drift.Fields{}
	for _, d := range r.found {
		if fields, ok := d.Fields(); ok {
			now[d.Object] = fields
		}
	}
	if len(now) == 0 && rec.Applied != "" {
		return false, nil
	}
	inventory, err := r.past.Scope.InventoryOf(rec)
	if err != nil {
		return false, err
	}
	for i := range inventory {
		if fields, ok := now[inventory[i].Key()]; ok {
			inventory[i].Fields = fields
		}
	}
	rec.State.Inventory, rec.Applied = inventory, record.SumsOf(inventory).String()
	return true, r.past.Store.Update(ctx, rec)
}
