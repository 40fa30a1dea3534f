// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"fmt"
	"slices"

	helmcommon "helm.sh/helm/v4/pkg/release/common"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/message"
)

// removal takes an add-on out of a cluster.
type removal struct {
	*call

	leaving []Release // which are removed, too
}

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
		return (&removal{call: r, leaving: leaving}).remove(ctx)
	})
}

func (r *removal) remove(ctx context.Context) (Outcome, error) {
	if err := r.list(ctx); err != nil {
		return Outcome{}, err
	}
	if len(r.records) == 0 || !r.records[0].Owned {
		r.records = nil
		return r.gone(ctx, "")
	}
	newest := r.records[0]
	r.digest = newest.Digest
	if o, early := r.s.backoff.waiting(r.now(), r.tried(newest.Digest)); early && r.s.about.removing {
		return o, nil
	}
	if !r.isProven(newest) {
		return Outcome{}, ErrUnproven
	}
	rec, err := r.load(ctx, newest)
	if err == nil && !r.believes(rec) {
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
	r.calledOff = r.isCalledOff()
	if r.rec.Status != string(helmcommon.StatusUninstalling) {
		r.rec.SetStatus(helmcommon.StatusUninstalling, "Deletion in progress")
		r.rec.Helm.Info.Deleted = r.now()
		r.rec.State.EventsDone, r.rec.State.Notes = nil, nil
		if err := r.s.store.Update(ctx, r.rec); err != nil {
			return Outcome{}, err
		}
	}
	steps := []func(context.Context) error{
		func(ctx context.Context) error { return r.removalHooks(ctx, helmrelease.HookPreDelete) },
		r.deleteObjects,
		func(ctx context.Context) error { return r.removalHooks(ctx, helmrelease.HookPostDelete) },
		r.retireAdopted,
	}
	if r.calledOff {
		steps = []func(context.Context) error{r.deleteObjects}
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return Outcome{}, err
		}
	}
	if r.calledOff { // Helm's records stay
		r.records = slices.DeleteFunc(r.records, func(s Summary) bool { return !s.Owned })
	}
	left := ""
	if notes := r.rec.State.Notes; len(notes) > 0 {
		left = "Left in the cluster: " + message.FirstFew(notes)
	}
	return r.gone(ctx, left)
}

// isCalledOff reports whether the release is one of Helm's that was to be taken over, and of which no revision of
// the add-on was ever deployed. The objects of Helm's release stay with it then.
func (r *removal) isCalledOff() bool {
	ofHelm := func(s Summary) bool { return !s.Owned && s.Status == StatusDeployed }
	was := func(s Summary) bool {
		return s.Owned && (s.Status == StatusDeployed || s.Status == string(helmcommon.StatusSuperseded))
	}
	return (r.rec.State.Adopted != nil || slices.ContainsFunc(r.records, ofHelm)) && !slices.ContainsFunc(r.records, was)
}

// deleteObjects deletes what the inventory says, and notes when that is done.
func (r *removal) deleteObjects(ctx context.Context) error {
	if r.rec.State.ObjectsGone {
		return nil
	}
	inventory, err := r.scope.InventoryOf(r.rec)
	if err != nil {
		return err
	}
	if err := (deletion{r.call}).deleteEntries(ctx, inventory, true); err != nil {
		return err
	}
	if len(hooksFor(r.rec.Helm.Hooks, helmrelease.HookPostDelete)) == 0 {
		return nil
	}
	r.rec.State.ObjectsGone = true
	return r.s.store.Update(ctx, r.rec)
}

// gone deletes the records. The newest comes last, as it says what is to be done.
func (r *removal) gone(ctx context.Context, message string) (Outcome, error) {
	var names []string
	for _, s := range slices.Backward(r.records) {
		names = append(names, s.SecretName)
	}
	if err := r.s.store.Delete(ctx, names...); err != nil {
		return Outcome{}, err
	}
	return r.settled(Outcome{Gone: true, Message: r.hidden.in(message)}), nil
}

// orphan lets go of all objects, and makes the records plain Helm ones. The
// objects lose our labels, as what has them is never taken over by another add-on.
func (r *removal) orphan(ctx context.Context) (Outcome, error) {
	inventory, err := r.scope.InventoryOf(r.rec)
	if err != nil {
		return Outcome{}, err
	}
	failed := object.InParallel(len(inventory), func(i int) *object.Failure {
		live, err := r.scope.Metadata(ctx, r.t.own(), inventory[i])
		if err == nil && object.OwnerOf(&live.ObjectMeta) == r.release {
			err = r.applier.Disown(ctx, live, false)
		}
		if object.IsGone(err) {
			return nil
		}
		return r.failureOf(inventory[i].Key(), err)
	})
	if err := r.stopFor(ctx, failed.Worst(), ""); err != nil {
		return Outcome{}, err
	}
	for _, s := range slices.Backward(r.records) { // the newest last
		rec, err := r.s.store.Load(ctx, s)
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
		if err := r.s.store.Plain(ctx, rec); err != nil {
			return Outcome{}, err
		}
	}
	r.records = nil // kept
	return r.gone(ctx, fmt.Sprintf("Left in the cluster as Helm release %s", r.release))
}

// removalHooks runs the hooks of a removal. They prepare for the end of what the
// add-on has, or clear up after it. So they aren't run if something of it lives on in
// another add-on: the Job that is to uninstall a storage system would do so.
func (r *removal) removalHooks(ctx context.Context, event helmrelease.HookEvent) error {
	if len(hooksFor(r.rec.Helm.Hooks, event)) == 0 || slices.Contains(r.rec.State.EventsDone, event.String()) {
		return nil
	}
	why, err := r.livesOn(ctx)
	if err != nil {
		return err
	}
	if why == "" {
		return hookRunner{r.call}.runHooks(ctx, event)
	}
	r.rec.State.Notes = append(r.rec.State.Notes, fmt.Sprintf("%s hooks weren't run, as %s", event, why))
	r.rec.State.EventsDone = append(r.rec.State.EventsDone, event.String())
	return r.s.store.Update(ctx, r.rec)
}

// livesOn says which object of the inventory now belongs to which other add-on that stays, "" for none.
func (r *removal) livesOn(ctx context.Context) (string, error) {
	inventory, err := r.scope.InventoryOf(r.rec)
	if err != nil {
		return "", err
	}
	for _, e := range inventory {
		if e.Shared || e.CRD {
			continue
		}
		live, err := r.scope.Metadata(ctx, r.t.own(), e)
		if object.IsGone(err) {
			continue
		}
		if err != nil {
			return "", r.failureOf(e.Key(), err)
		}
		if owner := object.OwnerOf(&live.ObjectMeta); owner != r.release && owner != (Release{}) && !slices.Contains(r.leaving, owner) {
			return fmt.Sprintf("%s belongs to add-on %s now", e.Key(), owner), nil
		}
	}
	return "", nil
}
