// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/apply"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// hookObject is a hook's object as it is to be applied.
func (r hookRunner) hookObject(h *helmrelease.Hook) (*unstructured.Unstructured, error) {
	objects, err := record.ParseManifest(h.Manifest)
	if err != nil {
		return nil, fmt.Errorf("hook %s: %w", h.Path, err)
	}
	prepared, err := r.scope.Prepare(objects)
	if err != nil {
		return nil, err
	}
	if len(prepared) != 1 {
		return nil, fmt.Errorf("hook %s has %d objects, not one: the release record is damaged", h.Path, len(prepared))
	}
	return prepared[0], nil
}

// awaitRunningHooks waits for hooks of the newest revision that run, before there is another one: that would end
// them in the middle, of a migration, say. The work that a hook of a removal started doesn't continue in an add-on that
// is wanted again.
func (r hookRunner) awaitRunningHooks(ctx context.Context) error {
	if len(r.records) == 0 || r.want.Again || !r.records[0].Pending() || !r.isProven(r.records[0]) {
		return nil
	}
	rec, err := r.load(ctx, r.records[0])
	if err != nil || !r.believes(rec) {
		return err
	}
	r.rec = rec
	for _, h := range rec.Helm.Hooks {
		if h.Kind != "Job" && h.Kind != "Pod" {
			continue
		}
		if err := r.awaitRunningHook(ctx, h, rec.Status == StatusUninstalling); err != nil {
			return err
		}
	}
	r.rec = nil
	return nil
}

// hookGrace is how long a hook may take to have a pod that runs. Nobody waits for one that can't start.
const hookGrace = time.Minute

// awaitRunningHook waits for a hook of the revision. The object says whether it is of this revision, as the record
// says so only once it is done.
func (r hookRunner) awaitRunningHook(ctx context.Context, h *helmrelease.Hook, ends bool) error {
	o, err := r.hookObject(h)
	if err != nil {
		return nil //nolint:nilerr // it can't be there
	}
	live, err := r.applier.Get(ctx, o)
	if object.IsGone(err) {
		return nil
	}
	if err != nil {
		return r.failureOf(record.KeyOf(o), err)
	}
	run := live.GetAnnotations()[HookRunAnnotation]
	isOurs := strings.HasPrefix(run, fmt.Sprintf("%d.", r.rec.Revision)) && strings.HasSuffix(run, "."+string(r.rec.UID))
	now, err := r.scope.Observed(o, live, readiness.HookDone)
	if err != nil || !isOurs || live.GetDeletionTimestamp() != nil || now.Status.Phase != observe.InProgress {
		return err
	}
	left := r.deadline
	ready, _, _ := unstructured.NestedInt64(live.Object, "status", "ready") // of a Job
	phase, _, _ := unstructured.NestedString(live.Object, "status", "phase")
	if ready == 0 && phase != "Running" {
		left = min(left, hookGrace)
	}
	if left = live.GetCreationTimestamp().Add(left).Sub(r.now()); left > 0 {
		r.s.tracker.Track(r.t.Context, r.t.Dynamic, now)
		return r.wait(ReasonRunningHook, fmt.Sprintf(
			"Waiting for hook %s of revision %d, which another revision would end in the middle. To end it at once, annotate the ClusterAddon with %s",
			record.KeyOf(o), r.rec.Revision, addonsv1.ReconcileNowAnnotation), left)
	}
	if ends {
		return r.applier.Delete(ctx, live, live.GetUID(), metav1.DeletePropagationBackground)
	}
	return nil
}

// applyHook applies a hook's object. An object that an earlier run left is deleted before, and its
// end is waited for. The object of this very run may be there, too, as after a restart. Then the
// run continues.
func (r hookRunner) applyHook(ctx context.Context, h hook, o *unstructured.Unstructured, attempt int) error {
	var result *unstructured.Unstructured
	var err error
	if attempt == 1 {
		result, err = r.applier.ApplyNew(ctx, o)
	}
	if attempt > 1 || apply.IsThere(err) {
		result, err = r.replaceHook(ctx, h, o)
	}
	if err == nil {
		r.s.deferredSince = time.Time{}
		if previous, asked := r.s.deleted[record.KeyOf(o)]; asked { // and is gone now
			r.s.tracker.Untrack(previous.object.Resource, previous.object.Key)
			delete(r.s.deleted, record.KeyOf(o))
		}
		object, err := r.scope.Observed(o, result, readiness.HookDone)
		r.s.hooks[h.key] = &applied{Object: object, uid: result.GetUID()}
		return err
	}
	if _, ok := errors.AsType[*stopped](err); ok {
		return err
	}
	f := r.failureOf(record.KeyOf(o), err)
	if r.s.isFinal(f, r.now(), r.deadline) {
		return r.failHook(ctx, h, f.Message)
	}
	return r.stopFor(ctx, f, "")
}

// isRun reports whether what is there is a hook's object of this very run, and stays.
func isRun(there, o metav1.Object) bool {
	return there.GetAnnotations()[HookRunAnnotation] == o.GetAnnotations()[HookRunAnnotation] && there.GetDeletionTimestamp() == nil
}

// replaceHook applies a hook's object where there may be one of its name.
func (r hookRunner) replaceHook(ctx context.Context, h hook, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	e := record.EntryOf(o)
	there, err := r.applier.Metadata(ctx, e)
	switch {
	case object.IsGone(err): // nothing is in its place
	case err != nil:
		return nil, err
	case isRun(there, o):
		if live, err := r.applier.Get(ctx, o); !apierrors.IsNotFound(err) && (err != nil || isRun(live, o)) {
			return live, err
		}
	case e.GroupVersionKind().GroupKind() == object.CRDKind: // it stays, as in Helm
	default:
		stays, err := r.staysAsHook(ctx, e, there)
		if err == nil && !stays {
			err = r.clearLive(ctx, h, e, there)
		}
		if err != nil {
			return nil, err
		}
		if stays {
			if r.rec.Revision > 1 { // the add-on may have had it
				e.UID = there.UID
			}
			result, _, err := (&application{call: r.call}).applyFirst(ctx, o, e, false)
			return result, err
		}
	}
	return r.applier.Apply(ctx, o, false)
}

// mayHoldData reports whether objects of a kind may hold data of people.
func mayHoldData(gk schema.GroupKind) bool {
	return gk == object.ClaimKind || gk == object.NamespaceKind
}

// staysAsHook reports whether an object in the place of a hook's isn't deleted. It may hold data, and not be the add-on's.
// Or it is kept as objects of templates are.
func (r hookRunner) staysAsHook(ctx context.Context, e record.Entry, live *metav1.PartialObjectMetadata) (bool, error) {
	switch {
	case !mayHoldData(e.GroupVersionKind().GroupKind()):
		return false, nil
	case !r.isOwn(live):
		return true, nil
	case live.DeletionTimestamp != nil:
		return false, nil
	}
	why, err := deletion(r).keeper().Reason(ctx, e, live)
	return why != "", err
}

// isOwn reports whether an object in the place of a hook's is the add-on's. Labels alone don't make it so.
func (r hookRunner) isOwn(live *metav1.PartialObjectMetadata) bool {
	return object.IsOwned(&live.ObjectMeta, record.Entry{}, r.release, nil)
}

// dataPolicy is that of the add-on as it is wanted, or else of its record.
func (r *call) dataPolicy() addonsv1.DataPolicy {
	if r.want != nil {
		return r.want.DataPolicy
	}
	return r.rec.DataPolicy
}

// clearLive deletes what is in the place of a hook's object, if that is allowed, and waits for it.
func (r hookRunner) clearLive(ctx context.Context, h hook, e record.Entry, live *metav1.PartialObjectMetadata) error {
	owner := object.OwnerOf(&live.ObjectMeta)
	_, isHook := live.Annotations[helmrelease.HookAnnotation]
	// The objects of a leaving add-on are about to be deleted anyway.
	ours := r.isOwn(live) || r.want != nil && slices.Contains(r.want.Leaving, owner)
	if !ours && (!isHook || owner != Release{} && owner != r.release) {
		return r.failHook(ctx, h, fmt.Sprintf("%s exists already, and is no hook of this add-on. Rename one of the two", e.Key()))
	}
	allowed := len(h.DeletePolicies) == 0 || slices.Contains(h.DeletePolicies, helmrelease.HookBeforeHookCreation)
	// Unlike Helm, a failed run of ours doesn't stand in the way of the next attempt.
	if _, ran := live.Annotations[HookRunAnnotation]; !allowed && (!ours || !ran) {
		return r.failHook(ctx, h, fmt.Sprintf(
			"%s exists already, and its %s doesn't have before-hook-creation. Rename one of the two", e.Key(), helmrelease.HookDeleteAnnotation))
	}
	g, err := deletion(r).deleteLive(ctx, e, live)
	if err != nil {
		return err
	}
	return deletion(r).waitGone(ctx, []going{g}, ReasonHookFailed, fmt.Sprintf("The previous object of %s hook %s: ", h.key.Event, h.Name))
}

// deleteHooks deletes objects of hooks by their delete policies, the last one first.
func (r hookRunner) deleteHooks(ctx context.Context, hooks []hook) error {
	for _, h := range slices.Backward(hooks) {
		if err := r.deleteHook(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

// deleteHook deletes a hook's object by its delete policy.
func (r hookRunner) deleteHook(ctx context.Context, h hook) error {
	o, err := r.hookObject(h.Hook)
	if err != nil || o.GroupVersionKind().GroupKind() == object.CRDKind {
		return nil //nolint:nilerr // it can't be there
	}
	e := record.EntryOf(o)
	made, ok := r.s.hooks[h.key]
	if ok = ok && !mayHoldData(e.GroupVersionKind().GroupKind()); ok {
		err = r.applier.Delete(ctx, o, made.uid, metav1.DeletePropagationBackground)
	}
	if !ok || apierrors.IsConflict(err) { // another one is in its place
		var live *metav1.PartialObjectMetadata
		stays := false
		if live, err = r.applier.Metadata(ctx, e); err == nil {
			stays, err = r.staysAsHook(ctx, e, live)
		}
		if err == nil && !stays && r.isOwn(live) && live.DeletionTimestamp == nil {
			err = r.applier.Delete(ctx, live, live.UID, metav1.DeletePropagationBackground)
		}
	}
	if err == nil || object.IsGone(err) {
		return nil
	}
	return r.failureOf(e.Key(), err)
}
