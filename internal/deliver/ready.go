// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/log"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/health"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// readinessWait waits until objects of a revision are ready, and its postcondition holds.
type readinessWait struct{ *call }

// established waits for CRDs to be served.
func (r readinessWait) established(ctx context.Context, crds []*unstructured.Unstructured, rejections object.Failures) error {
	failed, waiting := r.unready(crds)
	if len(failed)+len(waiting) == 0 {
		return nil
	}
	r.watchUnready(crds)
	defer r.forgetUnwatched()
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
	r.s.tracker.Track(r.t.Context, r.t.Dynamic, watch...)
}

// awaitReady waits until all objects are ready. When they aren't in time, the
// add-on counts as failed, yet they are still watched.
func (r readinessWait) awaitReady(ctx context.Context) error {
	failed, waiting := r.unready(r.s.objects)
	if len(failed)+len(waiting) == 0 {
		return nil
	}
	r.watchUnready(r.s.objects)
	defer r.forgetUnwatched()
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
		reason, why = pods.found.Reason, fmt.Sprintf("%s: %s. ", pods.about, pods.found.Text(r.hidden.inWords))
	}
	if left <= 0 {
		return r.failed(ctx, ReasonReadinessTimeout, fmt.Sprintf(
			"%s%d of %d objects aren't ready within %s: %s%s",
			why, len(waiting), r.rec.Objects, r.want.ProgressDeadline, message.FirstFew(waiting), r.inTheWay()), 0)
	}
	return r.wait(reason, fmt.Sprintf("%sWaiting for %s", why, message.FirstFew(waiting)), retry.Sooner(retryAfter, podsAgain))
}

// forgetUnwatched has objects that can't be watched applied again by the next call, to see their status. An object
// that has come to its end isn't made again.
func (r readinessWait) forgetUnwatched() {
	maps.DeleteFunc(r.s.applied, func(_ record.ObjectKey, a *applied) bool {
		status := r.statusOf(a)
		return status.Phase != observe.Current && !status.Final && r.s.tracker.Fails(a.Resource)
	})
}

// inTheWay names workloads that go once all is ready: what isn't ready may wait for them.
func (r readinessWait) inTheWay() string {
	if r.s.pruned {
		return ""
	}
	var texts []string
	for _, e := range deletion(r).obsolete() {
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
	state.AppliedAt, state.Inventory = appliedAt, r.s.withUIDs(state.Inventory)
	return left, left, r.s.store.Update(ctx, r.rec)
}

// withUIDs notes the objects that are known to be this add-on's, with what it owns of them,
// and the namespaces that aren't.
func (s *session) withUIDs(entries []record.Entry) []record.Entry {
	noted := slices.Clone(entries)
	for i := range noted {
		e := &noted[i]
		if a, ok := s.applied[e.Key()]; ok {
			e.Shared = a.left && e.GroupVersionKind().GroupKind() == object.NamespaceKind
			if !a.left {
				e.UID, e.Fields = a.uid, a.fields
			}
		}
	}
	return noted
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

const (
	// firstPodLook is how long workloads are waited for before their pods are looked at. Each next look comes after
	// as long again as they have been waited for.
	firstPodLook = 3 * time.Second
	// maxPodLooks is how many workloads that aren't ready are looked at.
	maxPodLooks = 3
)

// lookAtPods looks for what pods of workloads wait for that aren't ready, if it is time to. It returns when the next
// look is due. A cluster that doesn't let pods be read is no failure of the add-on.
func (r readinessWait) lookAtPods(ctx context.Context, waited time.Duration) (next time.Duration) {
	look := &r.s.pods
	if look.next.IsZero() && waited < firstPodLook {
		return firstPodLook - waited
	}
	if left := look.next.Sub(r.now()); left > 0 {
		return left
	}
	look.next, look.found = r.now().Add(max(waited, firstPodLook)), nil
	looked := 0
	for _, o := range r.s.objects {
		key := record.KeyOf(o)
		a, isApplied := r.s.applied[key]
		if !isApplied || !readiness.IsWorkload(o.GroupVersionKind().GroupKind()) || r.statusOf(a).Phase == observe.Current {
			continue
		}
		if looked++; looked > maxPodLooks {
			break
		}
		found, err := health.LookAtPods(ctx, r.t.Client, o)
		if err != nil {
			log.FromContext(ctx).V(1).Info("Could not look at pods", "object", key.String(), "error", err.Error())
			break
		}
		if found != nil {
			look.found, look.about = found, key
			break
		}
	}
	return look.next.Sub(r.now())
}
