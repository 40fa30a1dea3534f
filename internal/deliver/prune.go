// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/deliver/keep"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// deletion deletes objects of an inventory, and waits until they are gone.
type deletion struct{ *call }

// prune deletes obsolete objects, if it is time to. By default the prune comes last: after all new objects are ready.
func (r deletion) prune(ctx context.Context, isTime bool) error {
	if r.s.pruned || !isTime {
		return nil
	}
	if err := r.deleteEntries(ctx, r.obsolete(), false); err != nil {
		return err
	}
	r.s.pruned = true
	return nil
}

// obsolete returns what earlier revisions had and this one hasn't, not as a hook either.
func (r deletion) obsolete() []record.Entry {
	runner, hooks := hookRunner(r), map[record.ObjectKey]bool{}
	before, after, _ := runner.events()
	for _, h := range slices.Concat(hooksFor(r.rec.Helm.Hooks, before), hooksFor(r.rec.Helm.Hooks, after)) {
		if o, err := runner.hookObject(h.Hook); err == nil { // else it can't be there
			hooks[record.KeyOf(o)] = true
		}
	}
	return slices.DeleteFunc(record.Minus(r.rec.State.Inventory, r.wanted()), func(e record.Entry) bool {
		_, applied := r.s.applied[e.Key()]
		return applied || hooks[e.Key()]
	})
}

// wanted returns what the revision has. A rollback leaves the CRDs of crds/, which its record doesn't have.
func (r deletion) wanted() []record.Entry {
	wanted := object.EntriesOf(r.s.crds, r.s.objects)
	if r.rec.IsRollback() {
		wanted = append(wanted, slices.DeleteFunc(slices.Clone(r.rec.State.Inventory), func(e record.Entry) bool { return !e.CRD })...)
	}
	return wanted
}

// deleteEntries deletes the objects of the entries that are this add-on's, wave by wave. An object
// that stays loses our labels. A wave begins once the previous one is gone. With toTheEnd, the last
// wave is waited for, too. It returns nil when there is nothing more to do.
func (r deletion) deleteEntries(ctx context.Context, entries []record.Entry, toTheEnd bool) error {
	grouped := object.RemovalWaves(entries)
	left := len(entries)
	for _, wave := range grouped {
		left -= len(wave)
		remaining, failed := r.deleteWave(ctx, wave)
		if err := r.stopFor(ctx, failed.Worst(), ReasonPruneFailed); err != nil {
			return err
		}
		if len(remaining) == 0 || left == 0 && !toTheEnd {
			continue
		}
		return r.waitGone(ctx, remaining, ReasonPruneFailed, "")
	}
	r.s.deferredSince = time.Time{}
	return nil
}

// waitGone watches objects until they are gone. When that takes too long the add-on counts
// as failed for a reason, with words on what they are in front of the message, yet they are
// still waited for.
func (r deletion) waitGone(ctx context.Context, remaining []going, late, what string) error {
	r.s.deferredSince = time.Time{} // all were asked to go
	var watch []observe.Object
	var texts []string
	again, left := retry.Deletion, r.deadline
	for _, g := range remaining {
		left = min(left, g.since.Add(r.deadline).Sub(r.now()))
		status, known := r.s.tracker.Status(g.object.Resource, g.object.Key)
		if !known || status.Final || !r.s.tracker.Live(g.object.Resource) {
			status = g.object.Status // which can become Gone, as a Job's that has ended can't
			watch = append(watch, g.object)
		}
		if g.unlabelled {
			again = retry.Unlabelled
		}
		text := g.entry.Key().String()
		if status.Message != "" {
			text += ": " + status.Message
		}
		texts = append(texts, text)
	}
	r.s.tracker.Track(r.t.Context, r.t.Dynamic, watch...)
	if left > 0 {
		return r.wait(object.ReasonWaitingForDeletion, "Waiting for these to be gone: "+message.FirstFew(texts), min(again, left))
	}
	return r.failed(ctx, late, fmt.Sprintf(
		"%sThese were deleted, and aren't gone within %s: %s. See who is to remove their finalizers. They are still waited for",
		what, r.deadline, message.FirstFew(texts)), again)
}

// deleteWave deletes the objects of a wave, and returns those that may still be there.
func (r deletion) deleteWave(ctx context.Context, wave []record.Entry) ([]going, object.Failures) {
	todo := slices.DeleteFunc(slices.Clone(wave), func(e record.Entry) bool { return r.s.deleted[e.Key()].over })
	failed := object.InParallel(len(todo), func(i int) *object.Failure {
		return r.failureOf(todo[i].Key(), r.deleteOne(ctx, todo[i]))
	})
	var remaining []going
	for _, e := range todo {
		if g, asked := r.s.deleted[e.Key()]; asked && !g.over {
			remaining = append(remaining, g)
		}
	}
	return remaining, failed
}

// deleteOne deletes an object if it is this add-on's and may go, unless that is under way.
func (r deletion) deleteOne(ctx context.Context, e record.Entry) error {
	if e.Shared {
		r.noteRemoved(e, "isn't this add-on's alone")
		return nil
	}
	r.s.noting.Lock()
	g := r.s.deleted[e.Key()] // zero if it wasn't asked to go yet, which isn't watched
	r.s.noting.Unlock()
	status, watched := r.s.tracker.Status(g.object.Resource, g.object.Key)
	if watched && !g.unlabelled && status.Phase != observe.Gone && r.s.tracker.Live(g.object.Resource) && !r.s.tracker.Fails(g.object.Resource) {
		return nil
	}
	live, err := r.scope.Metadata(ctx, r.t.own(), e)
	if object.IsGone(err) {
		// Before its CRD is deleted, and its watch ends.
		r.s.tracker.Untrack(g.object.Resource, g.object.Key)
		r.noteRemoved(e, "")
		return nil
	}
	if err != nil {
		return err
	}
	why, stays, err := r.whyStays(ctx, e, live)
	switch {
	case err != nil:
		return err
	case stays:
		r.noteRemoved(e, why)
	default:
		_, err = r.deleteLive(ctx, e, live)
	}
	return err
}

// whyStays reports whether an object isn't deleted, and why, if people are to know that. An object
// that is kept has a note then.
func (r deletion) whyStays(ctx context.Context, e record.Entry, live *metav1.PartialObjectMetadata) (why string, stays bool, _ error) {
	owner := object.OwnerOf(&live.ObjectMeta)
	switch owns := object.IsOwned(&live.ObjectMeta, e, r.release, r.adopted); {
	case !owns && owner != Release{} && owner != r.release:
		return fmt.Sprintf("belongs to add-on %s now", owner), true, nil
	case owns && r.calledOff && e.Helm:
		return "is left to Helm's release, as the add-on never had it whole", true, client.IgnoreNotFound(r.applier.Disown(ctx, live, false))
	case !owns:
		return "isn't this add-on's any more", true, nil
	case r.s.hasApplied(live.UID): // under another key, as after a move between API groups
		return "", true, nil
	case live.DeletionTimestamp != nil:
		return "", false, nil
	}
	why, err := r.keeper().Reason(ctx, e, live)
	if err != nil || why == "" {
		return "", false, err
	}
	return why, true, client.IgnoreNotFound(r.applier.Disown(ctx, live, true))
}

// keeper returns what tells which objects of the add-on stay.
func (r deletion) keeper() *keep.Keeper {
	return &keep.Keeper{
		Reader: r.t.own(), Discovery: r.t.Discovery, Scope: r.scope, DataPolicy: r.dataPolicy(), IsApplied: r.s.hasApplied,
	}
}

// deleteLive deletes an object unless that is under way, and returns what is waited for. The object is going since
// it was asked first or, after a restart, since when it says.
func (r deletion) deleteLive(ctx context.Context, e record.Entry, live *metav1.PartialObjectMetadata) (going, error) {
	mapping, err := r.scope.Mapping(e.GroupVersionKind())
	if err == nil && live.DeletionTimestamp == nil {
		err = r.applier.Delete(ctx, live, live.UID, metav1.DeletePropagationBackground)
	}
	if err != nil {
		return going{}, err
	}
	r.s.noting.Lock()
	defer r.s.noting.Unlock()
	g, asked := r.s.deleted[e.Key()]
	if !asked || g.over {
		g = going{since: cmp.Or(live.DeletionTimestamp, &metav1.Time{Time: r.now()}).Time}
	}
	g.entry, g.unlabelled = e, object.OwnerOf(&live.ObjectMeta) != r.release
	g.object = observe.Object{
		Resource: mapping.Resource, Key: client.ObjectKeyFromObject(live),
		Evaluator: readiness.StillThere, Status: observe.Status{Version: live.ResourceVersion},
	}
	r.s.deleted[e.Key()] = g
	return g, nil
}

// noteRemoved remembers that nothing is to be done about an entry any more, and
// why its object stays, if it does.
func (r deletion) noteRemoved(e record.Entry, why string) {
	r.s.noting.Lock()
	defer r.s.noting.Unlock()
	r.s.deleted[e.Key()] = going{over: true}
	note := fmt.Sprintf("%s %s", e.Key(), why)
	if why != "" && !slices.Contains(r.rec.State.Notes, note) {
		r.rec.State.Notes = append(r.rec.State.Notes, note)
		slices.Sort(r.rec.State.Notes)
	}
}

// hasApplied says whether an object was applied since the session began.
func (s *session) hasApplied(uid types.UID) bool {
	for _, a := range s.applied {
		if a.uid == uid {
			return true
		}
	}
	return false
}
