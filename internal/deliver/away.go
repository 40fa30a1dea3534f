// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// going is an object that was deleted and may still be there.
type going struct {
	entry  record.Entry
	object observe.Object
	since  time.Time
	// unlabelled says that the watch doesn't show the object: Helm made it.
	unlabelled bool
}

// takeAway deletes what is this add-on's of the entries, wave by wave, and lets go
// of the rest. A wave begins once the one before is gone; with toTheEnd, the last
// one is waited for, too. The outcome is nil when there is nothing more to do.
func (r *run) takeAway(ctx context.Context, entries []record.Entry, toTheEnd bool) (*Outcome, error) {
	grouped := removalWaves(entries)
	left := len(entries)
	for _, wave := range grouped {
		left -= len(wave)
		remaining, failed := r.deleteWave(ctx, wave)
		if err := failed.transient(); err != nil {
			return nil, err
		}
		if reason, message := failed.first(rejected); reason != "" {
			return r.fail(ctx, ReasonPruneFailed, message)
		}
		if reason, message := failed.first(deferred); reason != "" {
			return r.wait(reason, "Waiting: "+message, webhookRetry), nil
		}
		if len(remaining) == 0 || left == 0 && !toTheEnd {
			continue
		}
		return r.waitGone(ctx, remaining, ReasonPruneFailed, "")
	}
	return nil, nil
}

// waitGone watches objects until they are gone. When that takes too long the add-on counts
// as failed for a reason, with words on what they are in front of the message, yet they are
// still waited for.
func (r *run) waitGone(ctx context.Context, remaining []going, late, what string) (*Outcome, error) {
	var watch []observe.Object
	var texts []string
	retry, left := goneRetry, r.deadline()
	for _, g := range remaining {
		left = min(left, g.since.Add(r.deadline()).Sub(r.now()))
		if _, known := r.s.tracker.Status(g.object.Resource, g.object.Key); !known || !r.s.tracker.Live(g.object.Resource) {
			watch = append(watch, g.object)
		}
		if g.unlabelled {
			retry = unlabelledRetry
		}
		text := g.entry.Key().String()
		if s, ok := r.s.tracker.Status(g.object.Resource, g.object.Key); ok && s.Message != "" {
			text += ": " + s.Message
		}
		texts = append(texts, text)
	}
	if len(watch) > 0 {
		r.s.tracker.Track(r.root(), r.t.Dynamic, watch...)
	}
	if left > 0 {
		return r.wait(ReasonWaitingForDeletion, "Waiting for these to be gone: "+firstOf(texts), min(retry, left)), nil
	}
	o, err := r.failed(ctx, late, fmt.Sprintf(
		"%sThese were deleted, and aren't gone within %s: %s. See who is to remove their finalizers. They are still waited for", what, r.deadline(), firstOf(texts)))
	if err != nil {
		return nil, err
	}
	o.RetryAfter = cmp.Or(o.RetryAfter, retry)
	return o, nil
}

// goneRetry is when to look again after what was deleted, in case it was
// relabelled and so left the watch.
const (
	goneRetry       = 5 * time.Minute
	unlabelledRetry = 2 * time.Second
)

// deleteWave deletes the objects of a wave, and returns those that may still be there.
func (r *run) deleteWave(ctx context.Context, wave []record.Entry) ([]going, failures) {
	todo := slices.DeleteFunc(slices.Clone(wave), func(e record.Entry) bool { return r.s.removed[e.Key()] })
	results := make([]*going, len(todo))
	failed := r.inParallel(len(todo), func(i int) *failure {
		g, err := r.deleteOne(ctx, todo[i])
		results[i] = g
		if err == nil {
			return nil
		}
		key := todo[i].Key()
		f := classify(err, key, false)
		return &f
	})
	var remaining []going
	for _, g := range results {
		if g != nil {
			remaining = append(remaining, *g)
		}
	}
	return remaining, failed
}

// deleteOne deletes an object if it is this add-on's and may go. It returns nil
// once there is nothing to wait for.
func (r *run) deleteOne(ctx context.Context, e record.Entry) (*going, error) {
	if e.Shared {
		r.noteRemoved(e, "isn't this add-on's alone")
		return nil, nil
	}
	mapping, err := r.scope.mapping(e.GroupVersionKind())
	if isNoMatch(err) {
		r.noteRemoved(e, "") // with its kind
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	g := &going{entry: e, object: observe.Object{
		Resource: mapping.Resource, Key: observe.Key{Namespace: e.Namespace, Name: e.Name}, Judge: readiness.StillThere,
	}}
	r.s.noting.Lock()
	since, asked := r.s.deleted[e.Key()]
	r.s.noting.Unlock()
	g.since = since
	if s, ok := r.s.tracker.Status(g.object.Resource, g.object.Key); ok && asked && s.Phase != observe.Gone && r.s.tracker.Live(g.object.Resource) {
		return g, nil
	}
	live, err := r.metadataWith(ctx, r.t.own(), e)
	if apierrors.IsNotFound(err) {
		r.noteRemoved(e, "")
		// Before its CRD goes, and the watch with it.
		r.s.tracker.Untrack(g.object.Resource, g.object.Key)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !r.owns(&live.ObjectMeta, e) {
		why := "isn't this add-on's any more"
		if owner := OwnerOf(&live.ObjectMeta); owner != (Release{}) {
			why = fmt.Sprintf("belongs to add-on %s now", owner)
		}
		r.noteRemoved(e, why)
		return nil, nil
	}
	if r.s.hasApplied(live.UID) { // under another key, as after a move between API groups
		r.noteRemoved(e, "")
		return nil, nil
	}
	if live.DeletionTimestamp == nil {
		if why, err := r.spared(ctx, e, live); err != nil {
			return nil, err
		} else if why != "" {
			if err := r.handOver(ctx, live, true); client.IgnoreNotFound(err) != nil {
				return nil, err
			}
			r.noteRemoved(e, why)
			return nil, nil
		}
		r.wrote.Store(true)
		err := r.t.Client.Delete(ctx, live,
			client.Preconditions{UID: &live.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if apierrors.IsNotFound(err) {
			r.noteRemoved(e, "")
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
	}
	g.since = r.goingSince(e.Key(), live)
	g.object.ResourceVersion = live.ResourceVersion
	g.unlabelled = OwnerOf(&live.ObjectMeta) != r.release
	return g, nil
}

// goingSince notes that an object was asked to go, and returns since when it is going: by
// the object, if it says so, as after a restart.
func (r *run) goingSince(key record.ObjectKey, live *metav1.PartialObjectMetadata) time.Time {
	r.s.noting.Lock()
	defer r.s.noting.Unlock()
	if _, known := r.s.deleted[key]; !known {
		r.s.deleted[key] = r.now()
		if live.DeletionTimestamp != nil {
			r.s.deleted[key] = live.DeletionTimestamp.Time
		}
	}
	return r.s.deleted[key]
}

// noteRemoved remembers that nothing is to be done about an entry any more, and
// why its object stays, if it does.
func (r *run) noteRemoved(e record.Entry, why string) {
	r.s.noting.Lock()
	defer r.s.noting.Unlock()
	r.s.removed[e.Key()] = true
	if why == "" {
		return
	}
	note := fmt.Sprintf("%s %s", e.Key(), why)
	if !slices.Contains(r.rec.State.Notes, note) {
		r.rec.State.Notes = append(r.rec.State.Notes, note)
		slices.Sort(r.rec.State.Notes)
	}
}
