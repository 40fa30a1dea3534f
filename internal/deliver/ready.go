// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// readinessWait waits until objects of a revision are ready, and its postcondition holds.
type readinessWait struct{ *call }

// watchUnready watches the objects that aren't ready, and continues watching those
// that were watched before on a connection that is over.
func (r readinessWait) watchUnready(objects []*unstructured.Unstructured) {
	var watch []observe.Object
	for _, o := range objects {
		key := record.KeyOf(o)
		a, ok := r.s.applied[key]
		if !ok || !a.watched && a.Status.Phase == observe.Current {
			continue
		}
		if a.watched && r.s.tracker.Live(a.Resource) {
			continue
		}
		a.watched = true
		watch = append(watch, a.Object)
	}
	r.track(watch...)
}

// unready describes the objects that aren't ready: those that failed, and the rest.
func (r readinessWait) unready(objects []*unstructured.Unstructured) (failed, waiting []string) {
	for _, o := range objects {
		a, ok := r.s.applied[record.KeyOf(o)]
		if !ok {
			continue
		}
		s := r.statusOf(a)
		text := fmt.Sprintf("%s: %s", record.KeyOf(o), message.Shorten(r.hidden.inWords(s.Message), object.MaxWords))
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

// awaitReady waits until all objects are ready. When they aren't in time, the
// add-on counts as failed, yet they are still watched.
func (r readinessWait) awaitReady(ctx context.Context) error {
	failed, waiting := r.unready(r.s.objects)
	if len(failed)+len(waiting) == 0 {
		return nil
	}
	r.watchUnready(r.s.objects)
	left, retryAfter, err := r.noteWaiting(ctx)
	if err != nil {
		return err
	}
	if len(failed) > 0 {
		return r.failed(ctx, ReasonObjectFailed, message.FirstFew(failed), 0)
	}
	podsAgain := r.lookAtPods(ctx, r.want.ProgressDeadline-left)
	reason, why := ReasonWaitingForObjects, ""
	if pods := r.s.pods; pods.found != nil {
		reason, why = pods.found.Reason, fmt.Sprintf("%s: %s. ", pods.about, pods.found.Message)
	}
	if left <= 0 {
		return r.failed(ctx, ReasonReadinessTimeout, fmt.Sprintf(
			"%s%d of %d objects aren't ready within %s: %s%s",
			why, len(waiting), r.rec.Objects, r.want.ProgressDeadline, message.FirstFew(waiting), r.inTheWay()), 0)
	}
	if r.s.tracker.Failing() != nil {
		// An object that can't be watched is applied again, to see its status.
		maps.DeleteFunc(r.s.applied, func(_ record.ObjectKey, a *applied) bool { return r.statusOf(a).Phase != observe.Current })
	}
	return r.wait(reason, fmt.Sprintf("%sWaiting for %s", why, message.FirstFew(waiting)), retry.Sooner(retryAfter, podsAgain))
}

// inTheWay names workloads that go once all is ready: what isn't ready may wait for them.
func (r readinessWait) inTheWay() string {
	obsolete, err := revisionInventory(r).obsolete()
	if err != nil || r.s.pruned {
		return ""
	}
	var texts []string
	for _, e := range obsolete {
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
func (r readinessWait) noteWaiting(ctx context.Context) (left, retryAfter time.Duration, _ error) {
	state := r.rec.State
	appliedAt := cmp.Or(state.AppliedAt, r.s.appliedAt, r.now())
	r.s.appliedAt = appliedAt
	left = appliedAt.Add(r.want.ProgressDeadline).Sub(r.now())
	if !state.AppliedAt.IsZero() {
		return left, left, nil
	}
	if soon := appliedAt.Add(noteAfter).Sub(r.now()); soon > 0 {
		return left, min(left, soon), nil
	}
	state.AppliedAt, state.Inventory = appliedAt, revisionInventory(r).withUIDs(state.Inventory)
	return left, left, r.update(ctx)
}

// awaitPostcondition waits until what has to hold after the add-on was applied does
// so. When that takes too long the add-on counts as failed, yet is still waited for.
func (r readinessWait) awaitPostcondition(ctx context.Context) error {
	if r.want.Postcondition == nil || r.rec.IsRollback() {
		return nil
	}
	waiting, retryAfter, err := r.want.Postcondition(ctx)
	if waiting == "" || err != nil {
		return err
	}
	left, soon, err := r.noteWaiting(ctx)
	if err != nil {
		return err
	}
	if left <= 0 {
		return r.failed(ctx, ReasonReadinessTimeout, fmt.Sprintf(
			"a postcondition doesn't hold within %s: %s", r.want.ProgressDeadline, waiting), retryAfter)
	}
	return r.wait(ReasonWaitingForPostcondition, "Waiting for "+waiting, retry.Sooner(retryAfter, soon))
}

// jobDone is the status of a Job that is known from the record to have run to its end.
var jobDone = observe.Status{Phase: observe.Current, Final: true, Message: "it ran to its end"}

// noteJobs records the Jobs of the manifest that ran to their end. Nothing else tells of it
// once they are gone by their ttlSecondsAfterFinished, and each is to run once for a revision.
func (r *application) noteJobs(ctx context.Context, objects []*unstructured.Unstructured) error {
	known := len(r.rec.State.JobsDone)
	for _, o := range objects {
		key := record.KeyOf(o)
		if !readiness.IsJob(o) {
			continue
		}
		a, ok := r.s.applied[key]
		if !ok || a.left {
			continue
		}
		_, noted := r.rec.State.JobDone(key)
		if status := r.statusOf(a); !noted && status.Final && status.Phase == observe.Current {
			e := record.EntryOf(o)
			e.UID = a.uid
			r.rec.State.JobsDone = append(r.rec.State.JobsDone, e)
		}
	}
	if len(r.rec.State.JobsDone) == known {
		return nil
	}
	return r.update(ctx)
}

// established waits for CRDs to be served.
func (r *application) established(ctx context.Context, crds []*unstructured.Unstructured, rejections object.Failures) error {
	failed, waiting := readinessWait{r.call}.unready(crds)
	if len(failed)+len(waiting) == 0 {
		return nil
	}
	readinessWait{r.call}.watchUnready(crds)
	if len(failed) > 0 {
		return r.failed(ctx, ReasonObjectFailed, message.FirstFew(failed), 0)
	}
	deadline := r.rec.Helm.Info.LastDeployed.Add(r.want.ProgressDeadline)
	if !r.now().Before(deadline) {
		return r.failed(ctx, ReasonReadinessTimeout, message.FirstFew(waiting), 0)
	}
	if f := rejections.Worst(); f != nil && f.Kind == object.Rejected {
		waiting = append(waiting, f.Message)
	}
	return r.wait(object.ReasonWaitingForCRDs, "Waiting for "+message.FirstFew(waiting), deadline.Sub(r.now()))
}
