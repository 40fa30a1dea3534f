// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/cluster-api/util/annotations"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/apply"
	"github.com/cluster-chandler/chandler/internal/deliver/deletion"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/outcome"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// objectOf returns a hook's object as it is to be applied.
func objectOf(scope *object.Scope, h *helmrelease.Hook) (*unstructured.Unstructured, error) {
	objects, err := record.ParseManifest(h.Manifest)
	if err != nil {
		return nil, fmt.Errorf("hook %s: %w", h.Path, err)
	}
	prepared, err := scope.Prepare(objects)
	if err != nil {
		return nil, err
	}
	if len(prepared) != 1 {
		return nil, fmt.Errorf("hook %s has %d objects, not one: the release record is damaged", h.Path, len(prepared))
	}
	return prepared[0], nil
}

// ofAttempt returns a hook's object as an attempt has it.
func (r *Runner) ofAttempt(h Hook, attempt int) (*unstructured.Unstructured, error) {
	o, err := objectOf(r.Applier.Scope, h.Hook)
	if err == nil {
		annotations.AddAnnotations(o, map[string]string{
			RunAnnotation: fmt.Sprintf("%d.%s.%d.%s", r.Record.Revision, h.key.Event, attempt, r.Record.UID),
		})
	}
	return o, err
}

// AwaitRunning waits for hooks of the revision that run, before there is another one: that would end
// them in the middle, of a migration, say. The work that a hook of a removal started doesn't continue in an add-on that
// is wanted again.
func (r *Runner) AwaitRunning(ctx context.Context) (outcome.Stop, error) {
	for _, h := range r.Record.Helm.Hooks {
		if h.Kind != "Job" && h.Kind != "Pod" {
			continue
		}
		if stop, err := r.awaitRunning(ctx, h); stop.Is() || err != nil {
			return stop, err
		}
	}
	return outcome.Stop{}, nil
}

// hookGrace is how long a hook may take to have a pod that runs. Nobody waits for one that can't start.
const hookGrace = time.Minute

// awaitRunning waits for a hook of the revision. The object says whether it is of this revision, as the record
// says so only once it is done.
func (r *Runner) awaitRunning(ctx context.Context, h *helmrelease.Hook) (outcome.Stop, error) {
	o, err := objectOf(r.Applier.Scope, h)
	if err != nil {
		return outcome.Stop{}, nil //nolint:nilerr // it can't be there
	}
	live, err := r.Applier.Get(ctx, o)
	if object.IsGone(err) {
		return outcome.Stop{}, nil
	}
	if err != nil {
		return outcome.Stop{}, r.Hidden.FailureOf(record.KeyOf(o), err)
	}
	run := live.GetAnnotations()[RunAnnotation]
	isOurs := strings.HasPrefix(run, fmt.Sprintf("%d.", r.Record.Revision)) && strings.HasSuffix(run, "."+string(r.Record.UID))
	now, err := r.Applier.Scope.Observed(o, live, readiness.HookDone)
	if err != nil || !isOurs || live.GetDeletionTimestamp() != nil || now.Status.Phase != observe.InProgress {
		return outcome.Stop{}, err
	}
	left := r.Patience.Deadline
	ready, _, _ := unstructured.NestedInt64(live.Object, "status", "ready") // of a Job
	phase, _, _ := unstructured.NestedString(live.Object, "status", "phase")
	if ready == 0 && phase != "Running" {
		left = min(left, hookGrace)
	}
	if left = live.GetCreationTimestamp().Add(left).Sub(r.Patience.Clock.Now()); left > 0 {
		r.Watch(now)
		return outcome.Wait(outcome.ReasonRunningHook, fmt.Sprintf(
			"Waiting for hook %s of revision %d, which another revision would end in the middle. To end it at once, annotate the ClusterAddon with %s",
			record.KeyOf(o), r.Record.Revision, addonsv1.ReconcileNowAnnotation), left), nil
	}
	if r.Record.Status == record.StatusUninstalling {
		return outcome.Stop{}, r.Applier.Delete(ctx, live, live.GetUID(), metav1.DeletePropagationBackground)
	}
	return outcome.Stop{}, nil
}

// apply applies a hook's object. An object that an earlier run left is deleted before, and its
// end is waited for. The object of this very run may be there, too, as after a restart. Then the
// run continues.
func (r *Runner) apply(ctx context.Context, h Hook, o *unstructured.Unstructured, attempt int) (stop outcome.Stop, err error) {
	var result *unstructured.Unstructured
	if ahead, known := r.ahead[h.key]; known {
		result, err = ahead.result, ahead.err
		delete(r.ahead, h.key)
	} else if attempt == 1 {
		result, err = r.Applier.ApplyNew(ctx, o)
	}
	if attempt > 1 || apply.IsThere(err) {
		if result, stop, err = r.replace(ctx, h, o); stop.Is() {
			return stop, err
		}
	}
	if err == nil {
		r.Patience.End()
		r.Deleter.Going.Forget(record.KeyOf(o), r.Tracker) // it is gone now
		object, err := r.Applier.Scope.Observed(o, result, readiness.HookDone)
		r.Progress.hooks[h.key] = &run{Object: object, uid: result.GetUID()}
		return stop, err
	}
	f := r.Hidden.FailureOf(record.KeyOf(o), err)
	if r.Patience.IsOver(f) {
		return r.fail(ctx, h, f.Message)
	}
	return r.Patience.StopFor(f, "")
}

// isRun reports whether what is there is a hook's object of this very run, and stays.
func isRun(there, o metav1.Object) bool {
	return there.GetAnnotations()[RunAnnotation] == o.GetAnnotations()[RunAnnotation] && there.GetDeletionTimestamp() == nil
}

// replace applies a hook's object where there may be one of its name.
func (r *Runner) replace(ctx context.Context, h Hook, o *unstructured.Unstructured) (*unstructured.Unstructured, outcome.Stop, error) {
	e := record.EntryOf(o)
	there, err := r.Applier.Metadata(ctx, e)
	switch {
	case object.IsGone(err): // nothing is in its place
	case err != nil:
		return nil, outcome.Stop{}, err
	case isRun(there, o):
		if live, err := r.Applier.Get(ctx, o); !apierrors.IsNotFound(err) && (err != nil || isRun(live, o)) {
			return live, outcome.Stop{}, err
		}
	case e.GroupVersionKind().GroupKind() == object.CRDKind: // it stays, as in Helm
	default:
		stays, err := r.stays(ctx, e, there)
		if err == nil && !stays {
			stop, err := r.clear(ctx, h, e, there)
			return nil, stop, err
		}
		if err != nil {
			return nil, outcome.Stop{}, err
		}
		if r.Record.Revision > 1 { // the add-on may have had it
			e.UID = there.UID
		}
		result, _, err := r.Claimer.ApplyThere(ctx, o, e, false)
		return result, outcome.Stop{}, err
	}
	result, err := r.Applier.Apply(ctx, o, false)
	return result, outcome.Stop{}, err
}

// mayHoldData reports whether objects of a kind may hold data of people.
func mayHoldData(gk schema.GroupKind) bool {
	return gk == object.ClaimKind || gk == object.NamespaceKind
}

// stays reports whether an object in the place of a hook's isn't deleted. It may hold data, and not be the add-on's.
// Or it is kept as objects of templates are.
func (r *Runner) stays(ctx context.Context, e record.Entry, live *metav1.PartialObjectMetadata) (bool, error) {
	switch {
	case !mayHoldData(e.GroupVersionKind().GroupKind()):
		return false, nil
	case !r.isOwn(live):
		return true, nil
	case live.DeletionTimestamp != nil:
		return false, nil
	}
	why, err := r.Keeper.Reason(ctx, e, live)
	return why != "", err
}

// isOwn reports whether an object in the place of a hook's is the add-on's. Labels alone don't make it so.
func (r *Runner) isOwn(live *metav1.PartialObjectMetadata) bool {
	return object.IsOwned(&live.ObjectMeta, record.Entry{}, r.Applier.Scope.Release, nil)
}

// clear deletes what is in the place of a hook's object, if that is allowed, and waits for it.
func (r *Runner) clear(ctx context.Context, h Hook, e record.Entry, live *metav1.PartialObjectMetadata) (outcome.Stop, error) {
	owner := object.OwnerOf(&live.ObjectMeta)
	_, isHook := live.Annotations[helmrelease.HookAnnotation]
	// The objects of a leaving add-on are about to be deleted anyway.
	ours := r.isOwn(live) || slices.Contains(r.Claimer.Leaving, owner)
	if !ours && (!isHook || owner != record.Release{} && owner != r.Applier.Scope.Release) {
		return r.fail(ctx, h, fmt.Sprintf("%s exists already, and is no hook of this add-on. Rename one of the two", e.Key()))
	}
	allowed := len(h.DeletePolicies) == 0 || slices.Contains(h.DeletePolicies, helmrelease.HookBeforeHookCreation)
	// Unlike Helm, a failed run of ours doesn't stand in the way of the next attempt.
	if _, ran := live.Annotations[RunAnnotation]; !allowed && (!ours || !ran) {
		return r.fail(ctx, h, fmt.Sprintf(
			"%s exists already, and its %s doesn't have before-hook-creation. Rename one of the two", e.Key(), helmrelease.HookDeleteAnnotation))
	}
	gone, err := r.Deleter.Delete(ctx, e, live)
	if err != nil {
		return outcome.Stop{}, err
	}
	return r.Deleter.Await([]deletion.Object{gone}, outcome.ReasonHookFailed, fmt.Sprintf("The previous object of %s hook %s: ", h.key.Event, h.Name)), nil
}

// deleteHooks deletes objects of hooks by their delete policies, beside each other: all hooks are done.
func (r *Runner) deleteHooks(ctx context.Context, hooks []Hook) error {
	objects := make([]*unstructured.Unstructured, len(hooks))
	for i, h := range hooks {
		objects[i], _ = objectOf(r.Applier.Scope, h.Hook) // else it can't be there
	}
	failed := object.InParallel(len(hooks), func(i int) *object.Failure {
		o := objects[i]
		if o == nil || o.GroupVersionKind().GroupKind() == object.CRDKind {
			return nil
		}
		return r.Hidden.FailureOf(record.KeyOf(o), r.deleteHook(ctx, hooks[i], o))
	})
	if f := failed.Worst(); f != nil {
		return f
	}
	return nil
}

// deleteHook deletes a hook's object by its delete policy.
func (r *Runner) deleteHook(ctx context.Context, h Hook, o *unstructured.Unstructured) (err error) {
	e := record.EntryOf(o)
	made, ok := r.Progress.hooks[h.key]
	if ok = ok && !mayHoldData(e.GroupVersionKind().GroupKind()); ok {
		err = r.Applier.Delete(ctx, o, made.uid, metav1.DeletePropagationBackground)
	}
	if !ok || apierrors.IsConflict(err) { // another one is in its place
		var live *metav1.PartialObjectMetadata
		stays := false
		if live, err = r.Applier.Metadata(ctx, e); err == nil {
			stays, err = r.stays(ctx, e, live)
		}
		if err == nil && !stays && r.isOwn(live) && live.DeletionTimestamp == nil {
			err = r.Applier.Delete(ctx, live, live.UID, metav1.DeletePropagationBackground)
		}
	}
	if object.IsGone(err) {
		return nil
	}
	return err
}

// Objects returns the objects of a revision's hooks of an event, in the order that they run in.
func Objects(scope *object.Scope, rec *record.Record, event helmrelease.HookEvent) (all []*unstructured.Unstructured) {
	for _, h := range For(rec.Helm.Hooks, event) {
		if o, err := objectOf(scope, h.Hook); err == nil { // else it can't be there
			all = append(all, o)
		}
	}
	return all
}

// Keys returns the objects of a revision's hooks of these events.
func Keys(scope *object.Scope, rec *record.Record, events ...helmrelease.HookEvent) map[record.ObjectKey]bool {
	keys := map[record.ObjectKey]bool{}
	for _, event := range events {
		for _, o := range Objects(scope, rec, event) {
			keys[record.KeyOf(o)] = true
		}
	}
	return keys
}
