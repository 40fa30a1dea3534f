// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"fmt"
	"slices"

	helmcommon "helm.sh/helm/v4/pkg/release/common"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/hooks"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/outcome"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
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
	if o, early := r.s.backoff.waiting(r.now(), r.attempt(newest.Digest)); early && r.s.about.removing {
		return o, nil
	}
	if !r.past.IsProven(newest) {
		return Outcome{}, ErrUnproven
	}
	rec, err := r.past.Load(ctx, newest)
	if err == nil && !r.past.Believes(rec) {
		err = ErrUnproven
	}
	if err != nil {
		return Outcome{}, err
	}
	r.rec = rec
	r.s.turnTo(rec.UID, true)
	if newest.DeletionPolicy == addonsv1.DeletionPolicyOrphan {
		return r.orphan(ctx)
	}
	if r.rec.Status != StatusUninstalling {
		r.rec.SetStatus(helmcommon.StatusUninstalling, "Deletion in progress")
		r.rec.Helm.Info.Deleted = r.now()
		r.rec.State.EventsDone, r.rec.State.Notes = nil, nil
		if err := r.past.Store.Update(ctx, r.rec); err != nil {
			return Outcome{}, err
		}
	}
	calledOff := isCalledOff(rec, r.past.Records)
	steps := []func(context.Context) (outcome.Stop, error){
		func(ctx context.Context) (outcome.Stop, error) {
			return r.removalHooks(ctx, helmrelease.HookPreDelete, leaving)
		},
		func(ctx context.Context) (outcome.Stop, error) { return r.deleteObjects(ctx, calledOff) },
		func(ctx context.Context) (outcome.Stop, error) {
			return r.removalHooks(ctx, helmrelease.HookPostDelete, leaving)
		},
		func(ctx context.Context) (outcome.Stop, error) { return outcome.Stop{}, r.retireAdopted(ctx) },
	}
	if calledOff {
		steps = steps[1:2]
	}
	for _, step := range steps {
		if stop, err := step(ctx); stop.Is() || err != nil {
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

// isCalledOff reports whether the release is one of Helm's that was to be taken over, and of which no revision of
// the add-on was ever deployed. The objects of Helm's release stay with it then.
func isCalledOff(rec *record.Record, records []Summary) bool {
	ofHelm := func(s Summary) bool { return !s.Owned && s.Status == StatusDeployed }
	was := func(s Summary) bool {
		return s.Owned && (s.Status == StatusDeployed || s.Status == string(helmcommon.StatusSuperseded))
	}
	return (rec.State.Adopted != nil || slices.ContainsFunc(records, ofHelm)) && !slices.ContainsFunc(records, was)
}

// deleteObjects deletes what the inventory says, and notes when that is done.
func (r *call) deleteObjects(ctx context.Context, calledOff bool) (outcome.Stop, error) {
	if r.rec.State.ObjectsGone {
		return outcome.Stop{}, nil
	}
	inventory, err := r.past.Scope.InventoryOf(r.rec)
	if err != nil {
		return outcome.Stop{}, err
	}
	pruner := r.pruner()
	pruner.CalledOff = calledOff
	if stop, err := pruner.Prune(ctx, inventory, true); stop.Is() || err != nil {
		return stop, err
	}
	if len(hooks.For(r.rec.Helm.Hooks, helmrelease.HookPostDelete)) == 0 {
		return outcome.Stop{}, nil
	}
	r.rec.State.ObjectsGone = true
	return outcome.Stop{}, r.past.Store.Update(ctx, r.rec)
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

// orphan lets go of all objects, and makes the records plain Helm ones. The
// objects lose our labels, as what has them is never taken over by another add-on.
func (r *call) orphan(ctx context.Context) (Outcome, error) {
	inventory, err := r.past.Scope.InventoryOf(r.rec)
	if err != nil {
		return Outcome{}, err
	}
	failed := object.InParallel(len(inventory), func(i int) *object.Failure {
		live, err := r.past.Scope.Metadata(ctx, r.t.own(), inventory[i])
		if err == nil && object.OwnerOf(&live.ObjectMeta) == r.past.Scope.Release {
			err = r.applier.Disown(ctx, live, false)
		}
		if object.IsGone(err) {
			return nil
		}
		return r.past.Hidden.FailureOf(inventory[i].Key(), err)
	})
	if stop, err := r.s.patience.StopFor(failed.Worst(), "", r.now(), r.deadline); stop.Is() || err != nil {
		return r.ended(ctx, stop, err)
	}
	for _, s := range slices.Backward(r.past.Records) { // the newest last
		rec, err := r.past.Store.Load(ctx, s)
		if record.IsUnreadable(err) {
			continue
		}
		if err != nil {
			return Outcome{}, err
		}
		if s.Revision == r.rec.Revision && rec.Status != string(helmcommon.StatusDeployed) && rec.State != nil {
			// It will never be completed, so that Helm may work on it.
			rec.SetStatus(helmcommon.StatusFailed, "Left by Chandler before it was complete")
		}
		if err := r.past.Store.Plain(ctx, rec); err != nil {
			return Outcome{}, err
		}
	}
	r.past.Records = nil // kept
	return r.gone(ctx, fmt.Sprintf("Left in the cluster as Helm release %s", r.past.Scope.Release))
}

// removalHooks runs the hooks of a removal. They prepare for the end of what the
// add-on has, or clear up after it. So they aren't run if something of it lives on in
// another add-on: the Job that is to uninstall a storage system would do so.
func (r *call) removalHooks(ctx context.Context, event helmrelease.HookEvent, leaving []Release) (outcome.Stop, error) {
	if len(hooks.For(r.rec.Helm.Hooks, event)) == 0 || slices.Contains(r.rec.State.EventsDone, event.String()) {
		return outcome.Stop{}, nil
	}
	why, err := r.livesOn(ctx, leaving)
	if err != nil {
		return outcome.Stop{}, err
	}
	if why == "" {
		return r.hooks().Run(ctx, event)
	}
	r.rec.State.Notes = append(r.rec.State.Notes, fmt.Sprintf("%s hooks weren't run, as %s", event, why))
	r.rec.State.EventsDone = append(r.rec.State.EventsDone, event.String())
	return outcome.Stop{}, r.past.Store.Update(ctx, r.rec)
}

// livesOn says which object of the inventory now belongs to which other add-on that stays, "" for none.
func (r *call) livesOn(ctx context.Context, leaving []Release) (string, error) {
	inventory, err := r.past.Scope.InventoryOf(r.rec)
	if err != nil {
		return "", err
	}
	for _, e := range inventory {
		if e.Shared || e.CRD {
			continue
		}
		live, err := r.past.Scope.Metadata(ctx, r.t.own(), e)
		if object.IsGone(err) {
			continue
		}
		if err != nil {
			return "", r.past.Hidden.FailureOf(e.Key(), err)
		}
		if owner := object.OwnerOf(&live.ObjectMeta); owner != r.past.Scope.Release && owner != (Release{}) && !slices.Contains(leaving, owner) {
			return fmt.Sprintf("%s belongs to add-on %s now", e.Key(), owner), nil
		}
	}
	return "", nil
}
