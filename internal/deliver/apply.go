// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/apply"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/drift"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// betweenTurns is how many objects are applied before others may have their turn.
const betweenTurns = 300

// application applies the CRDs and objects of a revision.
type application struct {
	*call

	noting      sync.Mutex
	transferred map[Release]bool // by this call
}

// applyObjects applies the objects of the manifest.
func (r *application) applyObjects(ctx context.Context) error {
	if err := r.rescope(); err != nil {
		return err
	}
	return r.applyAll(ctx, r.s.objects, false)
}

// applyAll applies the objects that aren't applied yet, wave by wave. A rejected object doesn't
// keep the others from being applied.
func (r *application) applyAll(ctx context.Context, objects []*unstructured.Unstructured, crds bool) error {
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
		for some := range slices.Chunk(todo, betweenTurns) {
			failed = append(failed, object.InParallel(len(some), func(i int) *object.Failure {
				key := record.KeyOf(some[i])
				return r.failureOf(key, r.applyOne(ctx, some[i], known[key], crds))
			})...)
			if f := failed.Worst(); f != nil && f.Kind == object.Transient {
				return f.Unwrap()
			}
			if r.turnIsOver() && len(failed) == 0 {
				return r.awaitTurn(time.Second)
			}
		}
		if wave[0].GroupVersionKind().GroupKind() != object.CRDKind {
			continue
		}
		if len(todo) > 0 {
			meta.MaybeResetRESTMapper(r.scope.Mapper)
		}
		if err := r.established(ctx, wave, failed); err != nil {
			return err
		}
	}
	r.allTried = !crds
	f := failed.Worst()
	r.applied = !crds && f == nil
	if f != nil && f.Kind == object.Deferred {
		return r.deferred(ctx, f.Reason, f.Message)
	}
	return r.stopFor(ctx, f, "")
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

// applyUnignored applies what rules don't leave to others of an object. It returns the object as it is in the cluster
// then, and whether that is left to its owner.
func (r *application) applyUnignored(
	ctx context.Context, o *unstructured.Unstructured, entry record.Entry, crd bool,
) (result *unstructured.Unstructured, left bool, err error) {
	if crd && r.want.CRDPolicy == addonsv1.CRDPolicyCreate {
		if _, err := r.applier.Metadata(ctx, entry); !apierrors.IsNotFound(err) {
			result, err = r.applier.Get(ctx, o) // an error comes up there again
			return result, true, err
		}
	}
	if entry.UID != "" {
		if result, err = r.applier.ApplyOwn(ctx, o, entry.UID); !errors.Is(err, apply.ErrAnother) {
			return result, false, err
		}
	}
	if !entry.Helm { // else it is there
		if result, err = r.applier.ApplyNew(ctx, o); !apply.IsThere(err) {
			return result, false, err
		}
	}
	return r.applyFirst(ctx, o, entry, crd)
}

// applyFirst applies an object that is there, and isn't known to be ours, after a look at it.
func (r *application) applyFirst(
	ctx context.Context, o *unstructured.Unstructured, entry record.Entry, crd bool,
) (result *unstructured.Unstructured, left bool, err error) {
	key := record.KeyOf(o)
	live, err := r.applier.Metadata(ctx, entry)
	if apierrors.IsNotFound(err) { // if somebody makes it in this moment, there is a conflict
		result, err = r.applier.Apply(ctx, o, false)
		return result, false, err
	}
	if err != nil {
		return nil, false, err
	}
	force := true
	c := object.Claimant{
		Release: r.release, Key: key, Policy: r.want.Adoption, CRD: crd, Had: entry.UID != "", Helm: entry.Helm, Leaving: r.want.Leaving,
	}
	switch verdict, reason, message := c.Decide(&live.ObjectMeta); verdict {
	case object.ClaimRefuse:
		return nil, false, object.Reject(key, reason, message)
	case object.ClaimLeave:
		result, err = r.applier.Get(ctx, o)
		return result, true, err
	case object.ClaimShare:
		result, err = r.applier.Share(ctx, o, live)
		return result, true, err
	case object.ClaimIfEqual:
		force, err = false, r.applier.Differs(ctx, o, live)
	case object.ClaimAdopt:
		err = r.applier.TakeFields(ctx, live)
	case object.ClaimTakeOver:
		err = r.takeOver(ctx, live, key)
	}
	switch {
	case err != nil:
		return nil, false, err
	case force:
		result, err = r.applier.ApplyOwn(ctx, o, live.UID)
	default:
		result, err = r.applier.Apply(ctx, o, false)
	}
	return result, false, err
}

// noteApplied remembers what became of an object. Fields are the add-on's, zero for those that it owns now.
func (r *application) noteApplied(o, result *unstructured.Unstructured, left bool, fields drift.Fields) error {
	watched, err := r.scope.Observed(o, result, r.checks.For(o).Judge())
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
