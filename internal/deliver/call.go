// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/apply"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// call is one call of Ensure, Remove or Repair: what all its steps need. Each step is a type of its own above it.
type call struct {
	history

	d         *Deliverer
	s         *session
	t         Target
	release   Release
	applier   apply.Applier
	want      *Desired      // nil in Remove and Repair
	deadline  time.Duration // of hooks, and of objects that are to be ready or gone
	removes   bool          // it is one of Remove
	calledOff bool          // it removes an adoption that never came to its end
	hidden    hidden

	digest      string         // of the inputs, or of the record that is removed
	rec         *record.Record // the revision that is being worked on
	adopted     *record.AdoptedRelease
	previous    *record.Record // that a new revision follows: the deployed one, or of the release of Helm that it takes over; nil if there is none
	checks      readiness.Checks
	scope       *object.Scope
	newRevision bool // it recorded one
	applied     bool // all objects are
	allTried    bool // each object is, whatever came of it

	memory *memory
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
	o.Proof, o.Recorded = r.proof, r.newRevision
	return o, err
}

func (d *Deliverer) newCall(ctx context.Context, t Target, release Release, want *Desired, proof string) *call {
	scope := t.scopeOf(release)
	r := &call{
		d: d, s: d.session(t, release), t: t, release: release, want: want, history: history{proof: proof},
		scope: scope, applier: apply.Applier{Client: t.Client, Scope: scope}, hidden: hidden{release: release},
		deadline: addonsv1.DefaultProgressDeadlineSeconds * time.Second, memory: newMemory(ctx, d.options.Memory, d.options.Clock),
	}
	r.s.store.Hold = r.memory.hold
	if want != nil {
		r.deadline, r.hidden.known = want.ProgressDeadline, slices.Clone(want.Sensitive)
	}
	return r
}

// storeOf has a release's records, which count in the memory of the call.
func (r *call) storeOf(release Release) *record.Store {
	store := r.d.storeOf(r.t, release)
	store.Hold = r.memory.hold
	return store
}

// contained does the work. A panic becomes the add-on's failure: no cluster's answer may end
// the process, which serves all others. So does any error that somebody can act on.
func (r *call) contained(ctx context.Context, work func(context.Context, *call) (Outcome, error)) (o Outcome, err error) {
	defer func() {
		if value := recover(); value != nil {
			r.s.contents = &contents{store: r.storeOf(r.release)}
			r.s.turn(subject{})
			err = r.refuse(ReasonInternalError, Panicked(ctx, r.t.Name, value))
		}
		if stop, ok := errors.AsType[*stopped](err); ok {
			o, err = stop.Outcome, nil
		}
	}()
	if there := r.s.tracker.Panicked(); there != nil {
		panic(there)
	}
	if err = r.memory.hold(ctx, r.s.size()); err == nil {
		o, err = work(ctx, r)
	}
	err = recordFault{r}.stop(ctx, r.stopForMemory(err))
	if f, ok := errors.AsType[*object.Failure](err); ok && f.Kind != object.Transient {
		if r.s.isFinal(f, r.now(), r.deadline) {
			err = r.refuse(f.Reason, f.Message)
		} else {
			err = r.wait(f.Reason, "Waiting: "+f.Message, retry.Webhook)
		}
	}
	return o, r.hidden.concealAll(err)
}

// stopForMemory returns the error of a call that others left no memory as what stops the call. Any other one is returned as it is.
func (r *call) stopForMemory(err error) error {
	if !errors.Is(err, errNoMemory) {
		return err
	}
	if len(r.records) == 0 {
		r.records = slices.Clone(r.s.records)
	}
	return r.wait(ReasonWaitingForMemory, "Other add-ons have the memory that this one needs", retry.Room)
}
