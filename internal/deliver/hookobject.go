// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"errors"
	"fmt"
	"slices"

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

// isRun reports whether what is there is a hook's object of this very run, and stays.
func isRun(there, o metav1.Object) bool {
	return there.GetAnnotations()[HookRunAnnotation] == o.GetAnnotations()[HookRunAnnotation] && there.GetDeletionTimestamp() == nil
}

// lookAtHook reads how a hook's object stands that can't be watched at present.
func (r hookRunner) lookAtHook(ctx context.Context, o *unstructured.Unstructured) (observe.Status, error) {
	live, err := r.applier.Get(ctx, o)
	switch {
	case apierrors.IsNotFound(err), err == nil && !isRun(live, o):
		return observe.Status{Phase: observe.Gone}, nil
	case err != nil:
		return observe.Status{}, r.failureOf(record.KeyOf(o), err)
	}
	return readiness.HookDone(live), nil
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
		object, err := r.scope.Observed(o, result, readiness.HookDone)
		r.s.hooks[h.key] = &applied{Object: object, uid: result.GetUID()}
		return err
	}
	if _, ok := errors.AsType[*stopped](err); ok {
		return err
	}
	f := r.failureOf(record.KeyOf(o), err)
	if f.Kind == object.Rejected {
		return r.failHook(ctx, h, f.Message)
	}
	return r.stopFor(ctx, f, "")
}

// staysAsHook reports whether a hook's object of a kind isn't deleted to be made again: a CRD, as in Helm, and what
// holds data, unless the add-on's dataPolicy is Delete.
func (r hookRunner) staysAsHook(gk schema.GroupKind) bool {
	return gk == object.CRDKind || (gk == object.ClaimKind || gk == object.NamespaceKind) && r.dataPolicy() != addonsv1.DataPolicyDelete
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
	case r.staysAsHook(o.GroupVersionKind().GroupKind()) && (object.OwnerOf(&there.ObjectMeta) == r.release || o.GroupVersionKind().GroupKind() == object.CRDKind):
	default:
		if err := r.clearLive(ctx, h, e, there); err != nil {
			return nil, err
		}
	}
	return r.applier.Apply(ctx, o, false)
}

// clearLive deletes what is in the place of a hook's object, if that is allowed, and waits for it.
func (r hookRunner) clearLive(ctx context.Context, h hook, e record.Entry, live *metav1.PartialObjectMetadata) error {
	owner := object.OwnerOf(&live.ObjectMeta)
	_, isHook := live.Annotations[helmrelease.HookAnnotation]
	// The objects of a leaving add-on are about to be deleted anyway.
	ours := owner == r.release || r.want != nil && slices.Contains(r.want.Leaving, owner)
	if !ours && (!isHook || owner != Release{}) {
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
	if err != nil || r.staysAsHook(o.GroupVersionKind().GroupKind()) {
		return nil //nolint:nilerr // it can't be there
	}
	e := record.EntryOf(o)
	made, ok := r.s.hooks[h.key]
	if ok {
		err = r.applier.Delete(ctx, o, made.uid, metav1.DeletePropagationBackground)
	}
	if !ok || apierrors.IsConflict(err) { // another one is in its place
		var live *metav1.PartialObjectMetadata
		live, err = r.applier.Metadata(ctx, e)
		if err == nil && object.OwnerOf(&live.ObjectMeta) == r.release && live.DeletionTimestamp == nil {
			err = r.applier.Delete(ctx, live, live.UID, metav1.DeletePropagationBackground)
		}
	}
	if err == nil || object.IsGone(err) {
		return nil
	}
	return r.failureOf(e.Key(), err)
}
