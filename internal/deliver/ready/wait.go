// SPDX-License-Identifier: Apache-2.0

package ready

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/hidden"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/outcome"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/health"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// Wait waits until objects of a revision are ready, and its postcondition holds.
type Wait struct {
	Record   *record.Record
	Store    *record.Store
	Objects  *Objects
	Progress *Progress
	// Watch begins to watch objects.
	Watch func(...observe.Object)
	// Wanted are the objects of the manifest.
	Wanted *[]*unstructured.Unstructured
	// Obsolete returns the objects that are deleted once all is ready.
	Obsolete func() []record.Entry
	// Postcondition tells what is waited for in the end, "" for nothing, and when to ask again. Nil: there is none.
	Postcondition func(context.Context) (waiting string, retryAfter time.Duration, err error)
	Deadline      time.Duration
	Client        client.Client
	Hidden        *hidden.Secrets
	Clock         clock.PassiveClock
}

// Progress is since when a revision's objects are waited for.
type Progress struct {
	// appliedAt is when all objects were applied, if the record doesn't say so yet; else zero.
	appliedAt time.Time
	pods      podLook
}

// podLook is why pods of a revision's workloads didn't run when they were looked at last, and when to look again.
type podLook struct {
	found *health.Finding // nil if nothing was seen
	about record.ObjectKey
	next  time.Time
}

// Established waits for CRDs to be served.
func (w *Wait) Established(crds []*unstructured.Unstructured, rejections object.Failures) outcome.Stop {
	failed, waiting := w.unready(crds)
	if len(failed)+len(waiting) == 0 {
		return outcome.Stop{}
	}
	w.WatchUnready(crds)
	defer w.forgetUnwatched()
	if len(failed) > 0 {
		return outcome.Fail(outcome.ReasonObjectFailed, message.FirstFew(failed), 0)
	}
	deadline := w.Record.Helm.Info.LastDeployed.Add(w.Deadline)
	if !w.Clock.Now().Before(deadline) {
		return outcome.Fail(outcome.ReasonReadinessTimeout, message.FirstFew(waiting), 0)
	}
	if f := rejections.Worst(); f != nil && f.Kind == object.Rejected {
		waiting = append(waiting, f.Message)
	}
	return outcome.Wait(object.ReasonWaitingForCRDs, "Waiting for "+message.FirstFew(waiting), deadline.Sub(w.Clock.Now()))
}

// unready describes the objects that aren't ready: those that failed, and the rest.
func (w *Wait) unready(objects []*unstructured.Unstructured) (failed, waiting []string) {
	for _, o := range objects {
		a, ok := w.Objects.all[record.KeyOf(o)]
		if !ok {
			continue
		}
		s := w.Objects.StatusOf(a)
		text := fmt.Sprintf("%s: %s", record.KeyOf(o), message.Shorten(w.Hidden.InWords(s.Message), object.MaxWords))
		switch s.Phase {
		case observe.Current:
		case observe.Failed:
			failed = append(failed, text)
		default:
			waiting = append(waiting, text)
		}
	}
	return failed, waiting
}

// WatchUnready watches the objects that aren't ready, and continues watching those
// that were watched before on a connection that is over.
func (w *Wait) WatchUnready(objects []*unstructured.Unstructured) {
	var watch []observe.Object
	for _, o := range objects {
		key := record.KeyOf(o)
		a, ok := w.Objects.all[key]
		if !ok || !a.watched && a.Status.Phase == observe.Current {
			continue
		}
		if a.watched && w.Objects.tracker.Live(a.Resource) {
			continue
		}
		a.watched = true
		watch = append(watch, a.Object)
	}
	w.Watch(watch...)
}

// AwaitReady waits until all objects are ready. When they aren't in time, the
// add-on counts as failed, yet they are still watched.
func (w *Wait) AwaitReady(ctx context.Context) (outcome.Stop, error) {
	failed, waiting := w.unready(*w.Wanted)
	if len(failed)+len(waiting) == 0 {
		return outcome.Stop{}, nil
	}
	w.WatchUnready(*w.Wanted)
	defer w.forgetUnwatched()
	left, retryAfter, err := w.noteWaiting(ctx)
	if err != nil {
		return outcome.Stop{}, err
	}
	if len(failed) > 0 {
		return outcome.Fail(outcome.ReasonObjectFailed, message.FirstFew(failed), 0), nil
	}
	podsAgain := w.lookAtPods(ctx, w.Deadline-left)
	reason, why := outcome.ReasonWaitingForObjects, ""
	if pods := w.Progress.pods; pods.found != nil {
		reason, why = pods.found.Reason, fmt.Sprintf("%s: %s. ", pods.about, pods.found.Text(w.Hidden.InWords))
	}
	if left <= 0 {
		return outcome.Fail(outcome.ReasonReadinessTimeout, fmt.Sprintf(
			"%s%d of %d objects aren't ready within %s: %s%s",
			why, len(waiting), w.Record.Objects, w.Deadline, message.FirstFew(waiting), w.inTheWay()), 0), nil
	}
	return outcome.Wait(reason, fmt.Sprintf("%sWaiting for %s", why, message.FirstFew(waiting)), retry.Sooner(retryAfter, podsAgain)), nil
}

// forgetUnwatched has objects that can't be watched applied again by the next call, to see their status. An object
// that has come to its end isn't made again.
func (w *Wait) forgetUnwatched() {
	maps.DeleteFunc(w.Objects.all, func(_ record.ObjectKey, a *Applied) bool {
		status := w.Objects.StatusOf(a)
		return status.Phase != observe.Current && !status.Final && w.Objects.tracker.Fails(a.Resource)
	})
}

// inTheWay names workloads that go once all is ready: what isn't ready may wait for them.
func (w *Wait) inTheWay() string {
	var texts []string
	for _, e := range w.Obsolete() {
		if readiness.IsWorkload(e.GroupVersionKind().GroupKind()) { // its pods may hold what others wait for
			texts = append(texts, e.Key().String())
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return fmt.Sprintf(". If it waits for a port, a volume or a lock of %s, which is deleted after that, set the add-on's prunePolicy to %s",
		message.FirstFew(texts), addonsv1.PrunePolicyBeforeReady)
}

// noteAfter is how long objects are waited for before the record says that they were applied. An
// add-on that is ready sooner saves a write. An add-on whose instance ends before is applied again.
const noteAfter = 10 * time.Second

// noteWaiting notes that all objects were applied. It returns how long they may still take to be
// ready, and when to look again.
func (w *Wait) noteWaiting(ctx context.Context) (left, retryAfter time.Duration, _ error) {
	state := w.Record.State
	appliedAt := cmp.Or(state.AppliedAt, w.Progress.appliedAt, w.Clock.Now())
	w.Progress.appliedAt = appliedAt
	left = appliedAt.Add(w.Deadline).Sub(w.Clock.Now())
	if !state.AppliedAt.IsZero() {
		return left, left, nil
	}
	if soon := appliedAt.Add(noteAfter).Sub(w.Clock.Now()); soon > 0 {
		return left, min(left, soon), nil
	}
	state.AppliedAt, state.Inventory = appliedAt, w.Objects.WithUIDs(state.Inventory)
	return left, left, w.Store.Update(ctx, w.Record)
}

// AwaitPostcondition waits until what has to hold after the add-on was applied does
// so. When that takes too long the add-on counts as failed, yet is still waited for.
func (w *Wait) AwaitPostcondition(ctx context.Context) (outcome.Stop, error) {
	if w.Postcondition == nil || w.Record.IsRollback() {
		return outcome.Stop{}, nil
	}
	waiting, retryAfter, err := w.Postcondition(ctx)
	if waiting == "" || err != nil {
		return outcome.Stop{}, err
	}
	left, soon, err := w.noteWaiting(ctx)
	if err != nil {
		return outcome.Stop{}, err
	}
	if left <= 0 {
		return outcome.Fail(outcome.ReasonReadinessTimeout, fmt.Sprintf(
			"a postcondition doesn't hold within %s: %s", w.Deadline, waiting), retryAfter), nil
	}
	return outcome.Wait(outcome.ReasonWaitingForPostcondition, "Waiting for "+waiting, retry.Sooner(retryAfter, soon)), nil
}
