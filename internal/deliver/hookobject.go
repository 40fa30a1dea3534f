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
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

var hookDone = readiness.HookDone

// hookObject is a hook's object as it is to be applied.
func (r *run) hookObject(h *helmrelease.Hook) (*unstructured.Unstructured, error) {
	objects, err := record.ParseManifest(h.Manifest)
	if err != nil {
		return nil, fmt.Errorf("hook %s: %w", h.Path, err)
	}
	prepared, err := r.prepare(objects)
	if err != nil {
		return nil, err
	}
	if len(prepared) != 1 {
		return nil, fmt.Errorf("hook %s has %d objects, not one: %w", h.Path, len(prepared), errNotOne)
	}
	return prepared[0], nil
}

var errNotOne = errors.New("the release record is damaged")

func annotate(o *unstructured.Unstructured, key, value string) {
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = make(map[string]string, 1)
	}
	annotations[key] = value
	o.SetAnnotations(annotations)
}

// isRun reports whether what is there is a hook's object of this very run, and stays.
func isRun(there, o metav1.Object) bool {
	return there.GetAnnotations()[HookRunAnnotation] == o.GetAnnotations()[HookRunAnnotation] && there.GetDeletionTimestamp() == nil
}

// liveHook reads a hook's object, if it is of this run; else it is a NotFound. One that is being
// deleted isn't.
func (r *run) liveHook(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(o.GroupVersionKind())
	if err := r.t.Client.Get(ctx, client.ObjectKeyFromObject(o), live); err != nil {
		return nil, err
	}
	if !isRun(live, o) {
		return nil, apierrors.NewNotFound(metav1.SchemeGroupVersion.WithResource("hooks").GroupResource(), o.GetName())
	}
	return live, nil
}

// lookAtHook reads how a hook's object stands that can't be watched at present.
func (r *run) lookAtHook(ctx context.Context, a applied, o *unstructured.Unstructured) (observe.Status, error) {
	live, err := r.liveHook(ctx, o)
	switch {
	case apierrors.IsNotFound(err):
		return observe.Status{Phase: observe.Gone}, nil
	case err != nil:
		key := record.KeyOf(o)
		return observe.Status{}, fmt.Errorf("%s: %w", key, redact(err, key))
	}
	return a.judge(live), nil
}

// applyHook applies a hook's object. What an earlier run left is deleted before, and waited for.
// This very run may be there, too, as after a restart: then it goes on.
func (r *run) applyHook(ctx context.Context, event helmrelease.HookEvent, h *helmrelease.Hook, key hookKey, o *unstructured.Unstructured, attempt int) (*Outcome, error) {
	var result *unstructured.Unstructured
	var err error
	if attempt == 1 {
		result, err = r.patchNew(ctx, o)
	}
	if attempt > 1 || isThere(err) {
		var outcome *Outcome
		if result, outcome, err = r.replaceHook(ctx, event, h, o); outcome != nil {
			return outcome, err
		}
	}
	if err == nil {
		r.wrote.Store(true)
		return nil, r.noteHook(key, o, result)
	}
	f := classify(r.conceal(err), record.KeyOf(o), r.scope.defines(o.GroupVersionKind().GroupKind()))
	switch f.kind {
	case transient:
		return nil, f.err
	case deferred:
		return r.wait(f.reason, "Waiting: "+f.message, webhookRetry), nil
	}
	return r.failHook(ctx, event, h, f.message)
}

// replaceHook applies a hook's object where there may be one of its name. CRDs are never deleted, as
// in Helm.
func (r *run) replaceHook(ctx context.Context, event helmrelease.HookEvent, h *helmrelease.Hook, o *unstructured.Unstructured) (*unstructured.Unstructured, *Outcome, error) {
	e := record.EntryOf(o)
	e.Helm = true
	there, err := r.metadata(ctx, e)
	switch {
	case apierrors.IsNotFound(err), isNoMatch(err): // nothing is in its place
	case err != nil:
		return nil, nil, err
	case isRun(there, o):
		if live, err := r.liveHook(ctx, o); !apierrors.IsNotFound(err) {
			return live, nil, err
		}
	case o.GroupVersionKind().GroupKind() != crdKind:
		if outcome, err := r.clearLive(ctx, event, h, e, there); outcome != nil || err != nil {
			return nil, outcome, err
		}
	}
	result, err := r.patch(ctx, o, false)
	return result, nil, err
}

// noteHook remembers what became of a hook's object.
func (r *run) noteHook(key hookKey, o, result *unstructured.Unstructured) error {
	mapping, err := r.scope.mapping(o.GroupVersionKind())
	if err != nil {
		return err
	}
	r.s.hooks[key] = applied{
		uid: result.GetUID(), version: result.GetResourceVersion(), resource: mapping.Resource,
		key:   observe.Key{Namespace: result.GetNamespace(), Name: result.GetName()},
		judge: hookDone, status: hookDone(result),
	}
	return nil
}

// clearLive deletes what is in the place of a hook's object, if that is allowed.
func (r *run) clearLive(ctx context.Context, event helmrelease.HookEvent, h *helmrelease.Hook, e record.Entry, live *metav1.PartialObjectMetadata) (*Outcome, error) {
	owner := OwnerOf(&live.ObjectMeta)
	_, isHook := live.Annotations[helmrelease.HookAnnotation]
	// What a leaving add-on has is about to be deleted anyway.
	ours := owner == r.release || r.want != nil && slices.Contains(r.want.Leaving, owner)
	wayOut := "Delete or rename it"
	if holdsData(e.Key()) {
		wayOut = "Rename it in the chart"
	}
	if !ours && (!isHook || owner != Release{}) {
		return r.failHook(ctx, event, h, fmt.Sprintf("%s exists already, and is no hook of this add-on. %s", e.Key(), wayOut))
	}
	allowed := len(h.DeletePolicies) == 0 || slices.Contains(h.DeletePolicies, helmrelease.HookBeforeHookCreation)
	// Unlike Helm, a failed run of ours doesn't stand in the way of the next attempt.
	if _, ran := live.Annotations[HookRunAnnotation]; !allowed && (!ours || !ran) {
		return r.failHook(ctx, event, h, fmt.Sprintf(
			"%s exists already, and its %s doesn't have before-hook-creation. %s", e.Key(), helmrelease.HookDeleteAnnotation, wayOut))
	}
	g := &going{entry: e, unlabelled: owner != r.release, since: r.goingSince(e.Key(), live)}
	if live.DeletionTimestamp == nil {
		if err := r.deleteAs(ctx, live, live.UID, e.Key()); err != nil {
			return nil, err
		}
	}
	mapping, err := r.scope.mapping(e.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	g.object.Resource, g.object.Key = mapping.Resource, client.ObjectKeyFromObject(live)
	g.object.Judge, g.object.ResourceVersion = readiness.StillThere, live.ResourceVersion
	return r.waitGone(ctx, []going{*g}, ReasonHookFailed, fmt.Sprintf("The former object of %s hook %s: ", event, h.Name))
}

// deleteHooks deletes objects of an event's hooks by their delete policies, the last one first.
func (r *run) deleteHooks(ctx context.Context, event helmrelease.HookEvent, hooks []*helmrelease.Hook) error {
	for _, h := range slices.Backward(hooks) {
		if err := r.deleteHook(ctx, event, h); err != nil {
			return err
		}
	}
	return nil
}

// deleteHook deletes a hook's object by its delete policy. A CRD stays, as in Helm.
func (r *run) deleteHook(ctx context.Context, event helmrelease.HookEvent, h *helmrelease.Hook) error {
	o, err := r.hookObject(h)
	if err != nil || o.GroupVersionKind().GroupKind() == crdKind {
		return nil //nolint:nilerr // it can't be there
	}
	e := record.EntryOf(o)
	if made, ok := r.s.hooks[hookKey{event.String(), h.Kind, h.Name}]; ok {
		err := r.deleteAs(ctx, o, made.uid, e.Key())
		if !apierrors.IsConflict(err) {
			return err
		}
	}
	live, err := r.metadata(ctx, e)
	if apierrors.IsNotFound(err) || isNoMatch(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", e.Key(), redact(err, e.Key()))
	}
	if OwnerOf(&live.ObjectMeta) != r.release || live.DeletionTimestamp != nil {
		return nil
	}
	return r.deleteAs(ctx, live, live.UID, e.Key())
}

// deleteAs deletes a hook's object that has this UID. There is a conflict if another one is in its
// place.
func (r *run) deleteAs(ctx context.Context, o client.Object, uid types.UID, key record.ObjectKey) error {
	r.wrote.Store(true)
	if err := r.t.Client.Delete(ctx, o, client.Preconditions{UID: &uid},
		client.PropagationPolicy(metav1.DeletePropagationBackground)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %s: %w", key, redact(err, key))
	}
	return nil
}
