// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/drift"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// betweenLooks is how many objects are applied before the next look whether the cluster answers: a worker is held meanwhile.
const betweenLooks = 300

// application applies the CRDs and objects of a revision.
type application struct {
	*call

	noting      sync.Mutex
	transferred []Release // by this call
}

// applyAll applies the CRDs of crds/, or else the objects of the manifest, that aren't applied yet, wave by wave. A rejected
// object doesn't keep the others from being applied.
func (r *application) applyAll(ctx context.Context, crds bool) error {
	objects := r.s.crds
	if !crds {
		if err := r.rescope(); err != nil {
			return err
		}
		objects = r.s.objects
	}
	inventory, err := r.scope.Normalize(r.rec.State.Inventory) // kinds may have come since it was written
	if err != nil {
		return err
	}
	r.rec.State.Inventory = inventory
	if err := r.noteJobs(ctx, objects); err != nil {
		return err
	}
	known := make(map[record.ObjectKey]record.Entry, len(inventory))
	for _, e := range inventory {
		known[e.Key()] = e
	}
	var failed object.Failures
	for _, wave := range object.Waves(objects) {
		todo := r.unapplied(wave)
		for some := range slices.Chunk(todo, betweenLooks) {
			failed = append(failed, object.InParallel(len(some), func(i int) *object.Failure {
				key := record.KeyOf(some[i])
				return r.failureOf(key, r.applyOne(ctx, some[i], known[key], crds))
			})...)
			if f := failed.Worst(); f != nil && f.Kind == object.Transient {
				return f.Unwrap()
			}
		}
		if wave[0].GroupVersionKind().GroupKind() != object.CRDKind {
			continue
		}
		if len(todo) > 0 {
			meta.MaybeResetRESTMapper(r.scope.Mapper)
		}
		if err := (readinessWait{r.call}).established(ctx, wave, failed); err != nil {
			return err
		}
	}
	r.allTried = !crds
	f := failed.Worst()
	r.applied = !crds && f == nil
	if f == nil || f.Kind != object.Deferred {
		return r.stopFor(ctx, f, "")
	}
	return r.deferred(ctx, f.Reason, f.Message)
}

// rescope prepares the objects again if the cluster didn't know all of their kinds before.
// A CRD of a hook, or of another add-on, may have said since that a kind isn't
// namespaced.
func (r *application) rescope() error {
	if !r.s.unscoped {
		return nil
	}
	r.scope.Unknown = false
	objects, err := r.scope.Prepare(r.s.objects)
	if err != nil {
		return err
	}
	r.s.objects, r.s.unscoped = objects, r.scope.Unknown
	return nil
}

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
	return r.s.store.Update(ctx, r.rec)
}

// jobDone is the status of a Job that is known from the record to have run to its end.
var jobDone = observe.Status{Phase: observe.Current, Final: true, Message: "it ran to its end"}

// unapplied returns the objects that weren't applied in this session, or are gone
// since.
func (r *application) unapplied(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	var todo []*unstructured.Unstructured
	for _, o := range objects {
		key := record.KeyOf(o)
		done, ok := r.s.applied[key]
		if ok && done.watched && r.statusOf(done).Phase == observe.Gone {
			delete(r.s.applied, key)
			ok = false
		}
		if job, isDone := r.rec.State.JobDone(key); !ok && isDone {
			r.s.applied[key] = &applied{uid: job.UID, Object: observe.Object{Status: jobDone}}
			ok = true
		}
		if !ok {
			todo = append(todo, o)
		}
	}
	return todo
}

// applyOne applies an object, if it is ours to apply. The server tells whether that is so: what is
// new mustn't be there, and what was applied before has to have its UID.
func (r *application) applyOne(ctx context.Context, o *unstructured.Unstructured, entry record.Entry, crd bool) error {
	key := record.KeyOf(o)
	if key.Name == "" {
		return &object.Failure{Kind: object.Rejected, Reason: object.ReasonObjectRejected, Message: fmt.Sprintf("A %s has no name", key.Kind)}
	}
	if left, err := r.leaveAsDeployed(ctx, o); left {
		return err
	}
	o, whole, err := r.applier.WithoutIgnored(ctx, o, entry, r.want.Ignore)
	if err != nil {
		return err
	}
	result, left, err := r.applyUnignored(ctx, o, entry, crd)
	if err != nil {
		return r.orRecreate(ctx, o, err)
	}
	return r.noteApplied(o, result, left, whole)
}

// leaveAsDeployed reports whether an object stays as the deployed revision applied it, as nobody
// has changed it since. It is read, unless a watch shows it and it has no status to wait for. A CRD of crds/ is served
// since that revision.
func (r *application) leaveAsDeployed(ctx context.Context, o *unstructured.Unstructured) (left bool, _ error) {
	key := record.KeyOf(o)
	e, same := r.s.asDeployed[key]
	if !same {
		return false, nil
	}
	if r.want.Seen != nil && (e.CRD || readiness.HasNoStatus(o)) && len(r.checks.For(o)) == 0 {
		if seen, known := r.want.Seen(key); known && seen == e.Fields {
			ready := observe.Object{Status: observe.Status{Phase: observe.Current}}
			r.note(key, &applied{Object: ready, uid: e.UID, fields: e.Fields})
			return true, nil
		}
	}
	live, err := r.applier.Get(ctx, o)
	if err != nil {
		return false, nil //nolint:nilerr // applying it tells what is wrong
	}
	if live.GetUID() != e.UID || live.GetDeletionTimestamp() != nil || drift.FieldsOf(live.GetManagedFields(), r.scope.Manager()) != e.Fields {
		return false, nil
	}
	return true, r.noteApplied(o, live, false, 0)
}

// noteApplied remembers what became of an object. Fields are the add-on's, zero for those that it owns now.
func (r *application) noteApplied(o, result *unstructured.Unstructured, left bool, fields drift.Fields) error {
	watched, err := r.scope.Observed(o, result, r.checks.For(o).Evaluate())
	if err != nil {
		return err
	}
	if left {
		watched.Status.Phase = observe.Current // whoever owns it manages it
	}
	r.note(record.KeyOf(o), &applied{
		Object: watched, uid: result.GetUID(), left: left,
		fields: cmp.Or(fields, drift.FieldsOf(result.GetManagedFields(), r.scope.Manager())),
	})
	return nil
}

func (r *application) note(key record.ObjectKey, a *applied) {
	r.s.noting.Lock()
	defer r.s.noting.Unlock()
	if r.s.recreates == key {
		r.s.recreates = record.ObjectKey{}
	}
	r.s.applied[key] = a
}

// deferred waits for what may come by itself, such as the add-on's own webhook,
// until the deadline.
func (r *application) deferred(ctx context.Context, reason, message string) error {
	since := r.rec.Helm.Info.LastDeployed
	if reason == object.ReasonWaitingForDeletion && r.s.recreatesSince.After(since) {
		since = r.s.recreatesSince // to be made again
	}
	if r.now().After(since.Add(r.want.ProgressDeadline)) {
		return r.fail(ctx, reason, message)
	}
	readinessWait{r.call}.watchUnready(r.s.objects)
	after := retry.Webhook
	if reason == object.ReasonWaitingForCRDs {
		after = retry.Moment
	}
	return r.wait(reason, "Waiting: "+message, after)
}
