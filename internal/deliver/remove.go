// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"fmt"
	"slices"

	helmcommon "helm.sh/helm/v4/pkg/release/common"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/history"
	"github.com/cluster-chandler/chandler/internal/deliver/outcome"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/deliver/removal"
	"github.com/cluster-chandler/chandler/internal/deliver/revision"
	"github.com/cluster-chandler/chandler/internal/message"
)

// Remove takes the removal of an add-on as far as it can go now, by the deletion
// policy of its record. It is called again as Ensure is, until Outcome.Gone. A
// release that isn't Chandler's is left alone, and counts as gone. So is one whose record
// isn't proven: the error is [ErrUnproven] then.
//
// The order is: pre-delete hooks, the objects, post-delete hooks, the records. The hooks
// aren't run if another add-on has something of the release now, unless that is leaving, too.
func (d *Deliverer) Remove(ctx context.Context, t Target, release Release, proof string, leaving ...Release) (Outcome, error) {
	return d.within(ctx, t, release, nil, proof, func(ctx context.Context, r *call) (Outcome, error) {
		r.removes = true
		return r.remove(ctx, leaving)
	})
}

func (r *call) remove(ctx context.Context, leaving []Release) (Outcome, error) {
	if err := r.past.List(ctx); err != nil {
		return Outcome{}, err
	}
	if len(r.past.Records) == 0 || !r.past.Records[0].Owned {
		r.past.Records = nil
		return r.gone(ctx, "")
	}
	newest := r.past.Records[0]
	r.digest = newest.Digest
	if o, early := r.s.backoff.waiting(r.now(), attemptOf(r.want, r.past.Records, newest.Digest)); early && r.s.about.removing {
		return o, nil
	}
	rec, err := loadProven(ctx, r.past, newest)
	if err != nil {
		return Outcome{}, err
	}
	r.rec = rec
	r.s.turnTo(rec.UID, true)
	calledOff := removal.IsCalledOff(rec, r.past.Records)
	step := &removal.Step{
		Record: rec, Past: r.past, Reader: r.t.own(), RunHooks: r.hooks().Run, Leaving: leaving,
		Prune: func(ctx context.Context, all []record.Entry) (outcome.Stop, error) {
			return r.pruner(calledOff).Prune(ctx, all, true)
		},
	}
	if newest.DeletionPolicy == addonsv1.DeletionPolicyOrphan {
		if stop, err := step.Orphan(ctx, r.applier, r.patience()); stop.Is() || err != nil {
			return r.ended(ctx, stop, err)
		}
		r.past.Records = nil // kept
		return r.gone(ctx, fmt.Sprintf("Left in the cluster as Helm release %s", r.past.Scope.Release))
	}
	if r.rec.Status != StatusUninstalling {
		r.rec.SetStatus(helmcommon.StatusUninstalling, "Deletion in progress")
		r.rec.Helm.Info.Deleted = r.now()
		r.rec.State.EventsDone, r.rec.State.Notes = nil, nil
		if err := r.past.Store.Update(ctx, r.rec); err != nil {
			return Outcome{}, err
		}
	}
	steps := []func(context.Context) (outcome.Stop, error){
		func(ctx context.Context) (outcome.Stop, error) { return step.Hooks(ctx, helmrelease.HookPreDelete) },
		step.Objects,
		func(ctx context.Context) (outcome.Stop, error) { return step.Hooks(ctx, helmrelease.HookPostDelete) },
		func(ctx context.Context) (outcome.Stop, error) {
			return outcome.Stop{}, revision.RetireAdopted(ctx, r.storeOf, r.rec, r.t.Client)
		},
	}
	if calledOff {
		steps = steps[1:2]
	}
	for _, run := range steps {
		if stop, err := run(ctx); stop.Is() || err != nil {
			return r.ended(ctx, stop, err)
		}
	}
	if calledOff { // Helm's records stay
		r.past.Records = slices.DeleteFunc(r.past.Records, func(s Summary) bool { return !s.Owned })
	}
	left := ""
	if notes := r.rec.State.Notes; len(notes) > 0 {
		left = "Left in the cluster: " + message.FirstFew(notes)
	}
	return r.gone(ctx, left)
}

// loadProven returns the record of a summary, or ErrUnproven if others may have written it.
func loadProven(ctx context.Context, past *history.History, newest Summary) (*record.Record, error) {
	if !past.IsProven(newest) {
		return nil, ErrUnproven
	}
	rec, err := past.Load(ctx, newest)
	if err == nil && !past.Believes(rec) {
		err = ErrUnproven
	}
	return rec, err
}

// gone deletes the records. The newest comes last, as it says what is to be done.
func (r *call) gone(ctx context.Context, message string) (Outcome, error) {
	var names []string
	for _, s := range slices.Backward(r.past.Records) {
		names = append(names, s.SecretName)
	}
	if err := r.past.Store.Delete(ctx, names...); err != nil {
		return Outcome{}, err
	}
	return r.settled(Outcome{Gone: true, Message: r.past.Hidden.In(message)}), nil
}
