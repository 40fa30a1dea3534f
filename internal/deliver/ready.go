// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"fmt"
	"time"

	"github.com/cluster-chandler/chandler/internal/deliver/object"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/message"
)

// statusOf returns the newest status of an object that was applied.
func (r *run) statusOf(a applied) observe.Status {
	if a.watched {
		if s, ok := r.s.tracker.Status(a.Resource, a.Key); ok {
			return s
		}
	}
	return a.Status
}

// readyCount counts the objects of a revision that are ready. Before the first of them is
// applied these are the objects of the revision that is deployed.
func (r *run) readyCount(revision Summary) int32 {
	var n int32
	if len(r.s.applied) == 0 && r.want != nil {
		for _, s := range r.records {
			if s.Status == StatusDeployed && s.Revision < revision.Revision {
				return min(s.Objects, revision.Objects)
			}
		}
	}
	for _, a := range r.s.applied {
		if r.statusOf(a).Phase == observe.Current {
			n++
		}
	}
	return n
}

// watchUnready watches the objects that aren't ready, and goes on watching those
// that were watched before on a connection that is over.
func (r *run) watchUnready(objects []*unstructured.Unstructured) {
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
		r.s.applied[key] = a
		watch = append(watch, a.Object)
	}
	r.track(watch...)
}

// track watches objects for as long as the connection to the cluster lasts.
func (r *run) track(objects ...observe.Object) {
	if len(objects) > 0 {
		r.s.tracker.Track(r.t.Context, r.t.Dynamic, objects...)
	}
}

// unready describes the objects that aren't ready: those that failed, and the rest.
func (r *run) unready(objects []*unstructured.Unstructured) (failed, waiting []string) {
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

// established waits for CRDs to be served.
func (r *run) established(ctx context.Context, crds []*unstructured.Unstructured, rejections object.Failures) error {
	failed, waiting := r.unready(crds)
	if len(failed)+len(waiting) == 0 {
		return nil
	}
	r.watchUnready(crds)
	if len(failed) > 0 {
		return r.failed(ctx, ReasonObjectFailed, message.FirstFew(failed), 0)
	}
	deadline := r.rec.Helm.Info.LastDeployed.Add(r.want.ProgressDeadline)
	if !r.now().Before(deadline) {
		return r.failed(ctx, ReasonReadinessTimeout, message.FirstFew(waiting), 0)
	}
	if _, message := rejections.First(object.Rejected); message != "" {
		waiting = append(waiting, message)
	}
	return r.wait(object.ReasonWaitingForCRDs, "Waiting for "+message.FirstFew(waiting), deadline.Sub(r.now()))
}

// awaitReady waits until all objects are ready. When they aren't in time, the
// add-on counts as failed, yet they are still watched.
func (r *run) awaitReady(ctx context.Context) error {
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
	reason, why := r.s.pods.seen(ReasonWaitingForObjects)
	if left <= 0 {
		return r.failed(ctx, ReasonReadinessTimeout, fmt.Sprintf(
			"%s%d of %d objects aren't ready within %s: %s%s",
			why, len(waiting), r.rec.Objects, r.want.ProgressDeadline, message.FirstFew(waiting), r.inTheWay()), 0)
	}
	if r.s.tracker.Failing() != nil {
		// What can't be watched is applied again, to see its status.
		for key, a := range r.s.applied {
			if r.statusOf(a).Phase != observe.Current {
				delete(r.s.applied, key)
			}
		}
	}
	return r.wait(reason, fmt.Sprintf("%sWaiting for %s", why, message.FirstFew(waiting)), shorter(retryAfter, podsAgain))
}

// inTheWay names workloads that go once all is ready: what isn't ready may wait for them.
func (r *run) inTheWay() string {
	obsolete, err := r.obsolete()
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
// add-on that is ready sooner saves a write. One whose instance ends before is applied again.
const noteAfter = 10 * time.Second

// noteWaiting notes that all objects were applied. It returns how long they may still take to be
// ready, and when to look again.
func (r *run) noteWaiting(ctx context.Context) (left, retryAfter time.Duration, _ error) {
	state := r.rec.State
	if state.AppliedAt.IsZero() && r.s.appliedAt.IsZero() {
		r.s.appliedAt = r.now()
	}
	appliedAt := state.AppliedAt
	if appliedAt.IsZero() {
		appliedAt = r.s.appliedAt
	}
	left = appliedAt.Add(r.want.ProgressDeadline).Sub(r.now())
	if !state.AppliedAt.IsZero() {
		return left, left, nil
	}
	if soon := appliedAt.Add(noteAfter).Sub(r.now()); soon > 0 {
		return left, min(left, soon), nil
	}
	state.AppliedAt, state.Inventory = appliedAt, r.withUIDs(state.Inventory)
	return left, left, r.update(ctx)
}

// withUIDs notes the objects that are known to be this add-on's, with what it owns of them,
// and the namespaces that aren't.
func (r *run) withUIDs(entries []record.Entry) []record.Entry {
	out := make([]record.Entry, 0, len(entries))
	for _, e := range entries {
		if a, ok := r.s.applied[e.Key()]; ok {
			e.Shared = a.left && e.GroupVersionKind().GroupKind() == object.NamespaceKind
			if !a.left {
				e.UID, e.Fields = a.uid, a.fields
			}
		}
		out = append(out, e)
	}
	return out
}

// awaitPostcondition waits until what has to hold after the add-on was applied does
// so. When that takes too long the add-on counts as failed, yet is still waited for.
func (r *run) awaitPostcondition(ctx context.Context) error {
	if r.want.Postcondition == nil || r.isRollback() {
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
	return r.wait(ReasonWaitingForPostcondition, "Waiting for "+waiting, shorter(retryAfter, soon))
}

// jobDone is the status of a Job that is known from the record to have run to its end.
var jobDone = observe.Status{Phase: observe.Current, Final: true, Message: "it ran to its end"}

// noteJobs records the Jobs of the manifest that ran to their end. Nothing else tells of it
// once they are gone by their ttlSecondsAfterFinished, and each is to run once for a revision.
func (r *run) noteJobs(ctx context.Context, objects []*unstructured.Unstructured) error {
	known := len(r.rec.State.JobsDone)
	for _, o := range objects {
		key := record.KeyOf(o)
		if !readiness.IsJob(o) {
			continue
		}
		a, ok := r.s.applied[key]
		if status := r.statusOf(a); !ok || a.left || !status.Final || status.Phase != observe.Current {
			continue
		}
		if _, noted := r.rec.State.JobDone(key); !noted {
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
