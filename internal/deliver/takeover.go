// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/apply"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

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
	c := object.Claimant{Release: r.release, Key: key, CRD: crd, Had: entry.UID != "", Helm: entry.Helm}
	if r.want != nil { // else a hook of a removal makes it
		c.Policy, c.Leaving = r.want.Adoption, r.want.Leaving
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

// An object may be in a release that is about to go, and in the one that is being
// installed. It goes over from the one to the other: it is never deleted.

// takeOver makes an object of a leaving release ours to apply.
func (r *application) takeOver(ctx context.Context, live *metav1.PartialObjectMetadata, key record.ObjectKey) error {
	from := object.OwnerOf(&live.ObjectMeta)
	if from != r.release {
		if live.DeletionTimestamp != nil {
			return object.Postpone(key, fmt.Sprintf("it was deleted with add-on %s, and isn't gone yet", from))
		}
		if err := r.markTransferred(ctx, from); err != nil {
			return err
		}
	}
	return r.applier.TakeFields(ctx, live, object.ManagersAmong(&live.ObjectMeta, r.want.Leaving)...)
}

// markTransferred notes in the newest record of a release that something of it has another
// owner now. Should the release be wanted again, it isn't as it was installed: its objects are
// looked at and applied again. The transfer is noted first, as a crash may follow.
func (r *application) markTransferred(ctx context.Context, from Release) error {
	r.noting.Lock()
	defer r.noting.Unlock()
	if slices.Contains(r.transferred, from) {
		return nil
	}
	store := r.storeOf(from)
	rec, err := store.Newest(ctx)
	if err != nil {
		return err
	}
	if rec != nil && !rec.Transferred() {
		rec.MarkTransferred()
		if err := store.Update(ctx, rec); err != nil {
			return err
		}
	}
	r.transferred = append(r.transferred, from)
	return nil
}

// orRecreate returns the failure to apply an object. If that is for a field that can't be changed,
// and the add-on's policy allows it, the object is deleted, to be created again once it is gone.
// Only a single object is created again at a time.
func (r *application) orRecreate(ctx context.Context, o *unstructured.Unstructured, err error) error {
	key := record.KeyOf(o)
	f := r.failureOf(key, err)
	if f.Reason != object.ReasonImmutableField || !r.want.Recreate || !mayRecreate(o.GroupVersionKind().GroupKind()) {
		return f
	}
	live, err := r.applier.Get(ctx, o)
	if apierrors.IsNotFound(err) {
		return object.Postpone(key, "it is made again")
	}
	if err != nil {
		return err
	}
	if object.OwnerOf(&metav1.ObjectMeta{Labels: live.GetLabels()}) != r.release ||
		live.GetAnnotations()[record.ResourcePolicyAnnotation] == record.ResourcePolicyKeep {
		return f
	}
	if first := r.firstRecreated(key); first != key {
		return object.Postpone(key, fmt.Sprintf("it is made again after %s", first))
	}
	if going, err := r.scope.Observed(o, live, readiness.StillThere); err == nil { // else it is looked at again after a while
		r.s.tracker.Track(r.t.Context, r.t.Dynamic, going)
	}
	if live.GetDeletionTimestamp() == nil {
		if err := r.applier.Delete(ctx, live, live.GetUID(), propagation(o, live)); err != nil {
			return err
		}
	}
	return object.Postpone(key, "a field is to change that can't be changed: the object was deleted, and is made again once it is gone")
}

// mayRecreate reports whether objects of a kind may be deleted to be made again. Objects that
// hold data of people, as custom resources can, may not be. Neither may those whose deletion
// takes others along.
func mayRecreate(gk schema.GroupKind) bool {
	return object.IsBuiltin(gk) && gk != object.CRDKind && gk != object.NamespaceKind && gk != object.ClaimKind && gk != object.VolumeKind
}

// firstRecreated returns the object that is made again now: the given one, unless there is another.
func (r *application) firstRecreated(key record.ObjectKey) record.ObjectKey {
	r.s.noting.Lock()
	defer r.s.noting.Unlock()
	if r.s.recreates == (record.ObjectKey{}) {
		r.s.recreates, r.s.recreatesSince = key, r.now()
	}
	return r.s.recreates
}

// propagation returns what becomes of the objects that an object owns. Pods of a StatefulSet
// stay where the new one selects them, too.
func propagation(o, live *unstructured.Unstructured) metav1.DeletionPropagation {
	wanted, _, _ := unstructured.NestedMap(o.Object, "spec", "selector", "matchLabels")
	there, _, _ := unstructured.NestedMap(live.Object, "spec", "selector", "matchLabels")
	if o.GetKind() == "StatefulSet" && reflect.DeepEqual(wanted, there) {
		return metav1.DeletePropagationOrphan
	}
	return metav1.DeletePropagationBackground
}
