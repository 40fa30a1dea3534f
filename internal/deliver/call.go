// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"fmt"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/apply"
	"github.com/cluster-chandler/chandler/internal/deliver/hidden"
	"github.com/cluster-chandler/chandler/internal/deliver/history"
	"github.com/cluster-chandler/chandler/internal/deliver/memory"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/failure"
)

// call is one call of Ensure, Remove or Repair: it gives each step what that needs, and makes the outcome of how the step ends.
type call struct {
	d        *Deliverer
	s        *session
	t        Target
	past     *history.History
	applier  apply.Applier
	want     *Desired      // nil in Remove and Repair
	deadline time.Duration // of hooks, and of objects that are to be ready or gone
	removes  bool          // it is one of Remove

	digest   string         // of the inputs, or of the record that is removed
	rec      *record.Record // the revision that is being worked on
	recorded *Summary       // the new one that it recorded, nil for none
	applied  bool           // all objects are
	tried    bool           // each object is, whatever came of it
}

// within does work for an add-on.
func (d *Deliverer) within(
	ctx context.Context, t Target, release Release, want *Desired, proof string, work func(context.Context, *call) (Outcome, error),
) (Outcome, error) {
	r := d.newCall(ctx, t, release, want, proof)
	o, err := r.contained(ctx, work)
	r.remember(err)
	r.end(ctx)
	if err != nil {
		err = fmt.Errorf("add-on %s: %w", release, err)
	}
	o.Proof, o.Recorded = r.past.Proof, r.recorded
	return o, err
}

func (d *Deliverer) newCall(ctx context.Context, t Target, release Release, want *Desired, proof string) *call {
	scope := t.scopeOf(release)
	r := &call{
		d: d, s: d.session(t, release), t: t, want: want, applier: apply.Applier{Client: t.Client, Scope: scope},
		deadline: addonsv1.DefaultProgressDeadlineSeconds * time.Second,
	}
	var known []string
	if want != nil {
		r.deadline, known = want.ProgressDeadline, want.Sensitive
	}
	r.past = &history.History{
		Store: r.s.store, Scope: scope, Hidden: hidden.New(scope, known), Running: r.s.running, Proof: proof,
		Memory: memory.New(ctx, d.options.Memory, d.options.Clock),
	}
	r.s.store.Hold = r.past.Memory.Hold
	return r
}

// storeOf has a release's records, which count in the memory of the call.
func (r *call) storeOf(release Release) *record.Store {
	return r.d.storeOf(r.t, release, r.past.Memory)
}

// contained does the work. A panic becomes the add-on's failure: no cluster's answer may end
// the process, which serves all others. So does any error that somebody can act on.
func (r *call) contained(ctx context.Context, work func(context.Context, *call) (Outcome, error)) (o Outcome, err error) {
	defer func() {
		if value := recover(); value != nil {
			r.s.contents = &contents{store: r.storeOf(r.past.Scope.Release)}
			r.s.turn(subject{})
			o, err = r.refused(failure.New(ReasonInternalError, "%s", Panicked(ctx, r.t.Name, value))), nil
		}
	}()
	if there := r.s.tracker.Panicked(); there != nil {
		panic(there)
	}
	if err = r.past.Memory.Hold(ctx, r.s.size()); err == nil {
		o, err = work(ctx, r)
	}
	if err != nil {
		o, err = r.explain(ctx, err)
	}
	return o, r.past.Hidden.ConcealAll(err)
}
