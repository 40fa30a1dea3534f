// SPDX-License-Identifier: Apache-2.0

// Package deletion deletes single objects, and waits until they are gone.
package deletion

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/deliver/apply"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/outcome"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// Deleter deletes objects of an add-on.
type Deleter struct {
	Applier apply.Applier
	Going   *Going
	Tracker *observe.Tracker
	// Watch begins to watch objects.
	Watch    func(...observe.Object)
	Patience outcome.Patience
}

// IsUnderWay reports whether an object was asked to go, and a watch tells when it is gone.
func (d *Deleter) IsUnderWay(key record.ObjectKey) bool {
	g := d.Going.get(key) // zero if it wasn't asked to go yet, which isn't watched
	status, watched := d.Tracker.Status(g.object.Resource, g.object.Key)
	return watched && !g.unlabelled && status.Phase != observe.Gone && d.Tracker.Live(g.object.Resource) && !d.Tracker.Fails(g.object.Resource)
}

// End says that nothing is to be done about an object any more. Its watch ends before its CRD is deleted.
func (d *Deleter) End(key record.ObjectKey) {
	g := d.Going.get(key)
	d.Tracker.Untrack(g.object.Resource, g.object.Key)
	d.Going.end(key)
}

// Await watches objects until they are gone. When that takes too long the add-on counts
// as failed for a reason, with words on what they are in front of the message, yet they are
// still waited for.
func (d *Deleter) Await(remaining []Object, late, what string) outcome.Stop {
	d.Patience.End() // all were asked to go
	var watch []observe.Object
	var texts []string
	again, left := retry.Deletion, d.Patience.Deadline
	for _, g := range remaining {
		left = min(left, g.since.Add(d.Patience.Deadline).Sub(d.Patience.Clock.Now()))
		status, known := d.Tracker.Status(g.object.Resource, g.object.Key)
		if !known || status.Final || !d.Tracker.Live(g.object.Resource) {
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
	d.Watch(watch...)
	if left > 0 {
		return outcome.Wait(object.ReasonWaitingForDeletion, "Waiting for these to be gone: "+message.FirstFew(texts), min(again, left))
	}
	return outcome.Fail(late, fmt.Sprintf(
		"%sThese were deleted, and aren't gone within %s: %s. See who is to remove their finalizers. They are still waited for",
		what, d.Patience.Deadline, message.FirstFew(texts)), again)
}

// Delete deletes an object unless that is under way, and returns it as one to wait for. The object is going since
// it was asked first or, after a restart, since when it says.
func (d *Deleter) Delete(ctx context.Context, e record.Entry, live *metav1.PartialObjectMetadata) (Object, error) {
	mapping, err := d.Applier.Scope.Mapping(e.GroupVersionKind())
	if err == nil && live.DeletionTimestamp == nil {
		err = d.Applier.Delete(ctx, live, live.UID, metav1.DeletePropagationBackground)
	}
	if err != nil {
		return Object{}, err
	}
	return d.Going.note(Object{
		entry: e, since: d.Patience.Clock.Now(), unlabelled: object.OwnerOf(&live.ObjectMeta) != d.Applier.Scope.Release,
		object: observe.Object{
			Resource: mapping.Resource, Key: client.ObjectKeyFromObject(live),
			Evaluator: readiness.StillThere, Status: observe.Status{Version: live.ResourceVersion},
		},
	}, live.DeletionTimestamp), nil
}
