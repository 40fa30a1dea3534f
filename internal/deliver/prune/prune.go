// SPDX-License-Identifier: Apache-2.0

// Package prune deletes objects that an add-on doesn't have any more, and waits until they are gone.
package prune

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/deliver/apply"
	"github.com/cluster-chandler/chandler/internal/deliver/hidden"
	"github.com/cluster-chandler/chandler/internal/deliver/keep"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/outcome"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// Pruner deletes objects of an inventory.
type Pruner struct {
	// Record gets a note on each object that stays.
	Record *record.Record
	// Adopted is the release of Helm that the add-on takes over, if any.
	Adopted *record.AdoptedRelease
	// CalledOff says that the add-on is removed before any of its revisions was deployed.
	CalledOff bool

	Applier apply.Applier
	Keeper  *keep.Keeper
	Going   *Going
	Tracker *observe.Tracker
	// Watch begins to watch objects.
	Watch    func(...observe.Object)
	Patience *outcome.Patience
	Deadline time.Duration
	Hidden   *hidden.Secrets
	Clock    clock.PassiveClock
}

// Prune deletes the objects of the entries that are this add-on's, wave by wave. An object
// that stays loses the add-on's labels. A wave begins once the previous one is gone. With toTheEnd, the last
// wave is waited for, too.
func (p *Pruner) Prune(ctx context.Context, entries []record.Entry, toTheEnd bool) (outcome.Stop, error) {
	grouped := object.RemovalWaves(entries)
	left := len(entries)
	for _, wave := range grouped {
		left -= len(wave)
		remaining, failed := p.deleteWave(ctx, wave)
		stop, err := p.Patience.StopFor(failed.Worst(), outcome.ReasonPruneFailed, p.Clock.Now(), p.Deadline)
		if stop.Is() || err != nil {
			return stop, err
		}
		if len(remaining) > 0 && (left > 0 || toTheEnd) {
			return p.Await(remaining, outcome.ReasonPruneFailed, ""), nil
		}
	}
	p.Patience.Since = time.Time{}
	return outcome.Stop{}, nil
}

// Await watches objects until they are gone. When that takes too long the add-on counts
// as failed for a reason, with words on what they are in front of the message, yet they are
// still waited for.
func (p *Pruner) Await(remaining []Object, late, what string) outcome.Stop {
	p.Patience.Since = time.Time{} // all were asked to go
	var watch []observe.Object
	var texts []string
	again, left := retry.Deletion, p.Deadline
	for _, g := range remaining {
		left = min(left, g.since.Add(p.Deadline).Sub(p.Clock.Now()))
		status, known := p.Tracker.Status(g.object.Resource, g.object.Key)
		if !known || status.Final || !p.Tracker.Live(g.object.Resource) {
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
	p.Watch(watch...)
	if left > 0 {
		return outcome.Wait(object.ReasonWaitingForDeletion, "Waiting for these to be gone: "+message.FirstFew(texts), min(again, left))
	}
	return outcome.Fail(late, fmt.Sprintf(
		"%sThese were deleted, and aren't gone within %s: %s. See who is to remove their finalizers. They are still waited for",
		what, p.Deadline, message.FirstFew(texts)), again)
}

// deleteWave deletes the objects of a wave, and returns those that may still be there.
func (p *Pruner) deleteWave(ctx context.Context, wave []record.Entry) ([]Object, object.Failures) {
	todo := slices.DeleteFunc(slices.Clone(wave), func(e record.Entry) bool { return p.Going.all[e.Key()].over })
	failed := object.InParallel(len(todo), func(i int) *object.Failure {
		return p.Hidden.FailureOf(todo[i].Key(), p.deleteOne(ctx, todo[i]))
	})
	var remaining []Object
	for _, e := range todo {
		if g, asked := p.Going.all[e.Key()]; asked && !g.over {
			remaining = append(remaining, g)
		}
	}
	return remaining, failed
}

// deleteOne deletes an object if it is this add-on's and may go, unless that is under way.
func (p *Pruner) deleteOne(ctx context.Context, e record.Entry) error {
	g := p.Going.get(e.Key()) // zero if it wasn't asked to go yet, which isn't watched
	status, watched := p.Tracker.Status(g.object.Resource, g.object.Key)
	if watched && !g.unlabelled && status.Phase != observe.Gone && p.Tracker.Live(g.object.Resource) && !p.Tracker.Fails(g.object.Resource) {
		return nil
	}
	live := &metav1.PartialObjectMetadata{}
	var err error
	if !e.Shared {
		live, err = p.Applier.Scope.Metadata(ctx, p.Keeper.Reader, e)
	}
	if object.IsGone(err) {
		// Before its CRD is deleted, and its watch ends.
		p.Tracker.Untrack(g.object.Resource, g.object.Key)
		p.noteStaying(e, "")
		return nil
	}
	if err != nil {
		return err
	}
	verdict, why := keep.Facts{
		Entry: e, Live: &live.ObjectMeta, Release: p.Applier.Scope.Release, Adopted: p.Adopted, CalledOff: p.CalledOff,
		IsApplied: p.Keeper.IsApplied(live.UID),
	}.Decide()
	keeps := verdict == keep.Unsure
	if keeps {
		verdict = keep.Disowned
		if why, err = p.Keeper.Reason(ctx, e, live); err == nil && why == "" {
			verdict = keep.Goes
		}
	}
	switch {
	case err != nil:
		return err
	case verdict == keep.Goes:
		_, err = p.Delete(ctx, e, live)
		return err
	case verdict == keep.Disowned:
		if err := client.IgnoreNotFound(p.Applier.Disown(ctx, live, keeps)); err != nil {
			return err
		}
	}
	p.noteStaying(e, why)
	return nil
}

// noteStaying remembers that nothing is to be done about an entry any more, and
// why its object stays, if it does and people are to know that.
func (p *Pruner) noteStaying(e record.Entry, why string) {
	p.Going.mu.Lock()
	defer p.Going.mu.Unlock()
	p.Going.all[e.Key()] = Object{over: true}
	note := fmt.Sprintf("%s %s", e.Key(), why)
	if notes := &p.Record.State.Notes; why != "" && !slices.Contains(*notes, note) {
		*notes = append(*notes, note)
		slices.Sort(*notes)
	}
}

// Delete deletes an object unless that is under way, and returns it as one to wait for. The object is going since
// it was asked first or, after a restart, since when it says.
func (p *Pruner) Delete(ctx context.Context, e record.Entry, live *metav1.PartialObjectMetadata) (Object, error) {
	mapping, err := p.Applier.Scope.Mapping(e.GroupVersionKind())
	if err == nil && live.DeletionTimestamp == nil {
		err = p.Applier.Delete(ctx, live, live.UID, metav1.DeletePropagationBackground)
	}
	if err != nil {
		return Object{}, err
	}
	return p.Going.note(Object{
		entry: e, since: p.Clock.Now(), unlabelled: object.OwnerOf(&live.ObjectMeta) != p.Applier.Scope.Release,
		object: observe.Object{
			Resource: mapping.Resource, Key: client.ObjectKeyFromObject(live),
			Evaluator: readiness.StillThere, Status: observe.Status{Version: live.ResourceVersion},
		},
	}, live.DeletionTimestamp), nil
}
