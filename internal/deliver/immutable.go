// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// mayRecreate reports whether objects of a kind may be deleted to be made anew. Objects that
// hold data of people, as custom resources can, may not be. Neither may those whose deletion
// takes others along.
func mayRecreate(gk schema.GroupKind) bool {
	return builtin(gk) && gk != crdKind && gk != namespaceKind && gk != claimKind && gk != volumeKind
}

// orRecreate returns a failure to apply an object. If that is for a field that can't be changed,
// and the add-on's policy allows it, the object is deleted, to be made anew once it is gone. One
// object is made anew at a time.
func (r *run) orRecreate(ctx context.Context, o *unstructured.Unstructured, f *failure) *failure {
	key := record.KeyOf(o)
	if f.reason != ReasonImmutableField || !r.want.Recreate || !mayRecreate(o.GroupVersionKind().GroupKind()) {
		return f
	}
	r.recreating.Lock()
	defer r.recreating.Unlock()
	wait := func(message string) *failure {
		return &failure{kind: deferred, reason: ReasonWaitingForDeletion, message: fmt.Sprintf("%s: %s", key, message)}
	}
	if first := r.recreates(record.ObjectKey{}); first != (record.ObjectKey{}) && first != key {
		return wait(fmt.Sprintf("it is made anew after %s", first))
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(o.GroupVersionKind())
	err := r.t.Client.Get(ctx, client.ObjectKeyFromObject(o), live)
	if apierrors.IsNotFound(err) {
		return wait("it is made anew")
	}
	if err != nil {
		failed := classify(r.conceal(err), key, false)
		return &failed
	}
	if OwnerOf(&metav1.ObjectMeta{Labels: live.GetLabels()}) != r.release {
		return f
	}
	if live.GetAnnotations()[record.ResourcePolicyAnnotation] == record.ResourcePolicyKeep {
		return f
	}
	r.recreates(key)
	r.awaitGone(o, live)
	if live.GetDeletionTimestamp() == nil {
		r.wrote.Store(true)
		uid := live.GetUID()
		err := r.t.Client.Delete(ctx, live, client.Preconditions{UID: &uid}, client.PropagationPolicy(propagation(o, live)))
		if client.IgnoreNotFound(err) != nil {
			failed := classify(r.conceal(err), key, false)
			return &failed
		}
	}
	return wait("a field is to change that can't be changed: the object was deleted, and is made anew once it is gone")
}

// recreates notes the object that is made anew, unless the key is zero, and returns it.
func (r *run) recreates(key record.ObjectKey) record.ObjectKey {
	r.s.noting.Lock()
	defer r.s.noting.Unlock()
	if key != (record.ObjectKey{}) {
		if r.s.recreates != key {
			r.s.recreatesSince = r.now()
		}
		r.s.recreates = key
	}
	return r.s.recreates
}

// propagation returns what becomes of the objects that an object owns. Pods of a StatefulSet
// stay where the new one selects them, too.
func propagation(o, live *unstructured.Unstructured) metav1.DeletionPropagation {
	selector := func(o *unstructured.Unstructured) map[string]any {
		selector, _, _ := unstructured.NestedMap(o.Object, "spec", "selector", "matchLabels")
		return selector
	}
	if o.GetKind() == "StatefulSet" && reflect.DeepEqual(selector(o), selector(live)) {
		return metav1.DeletePropagationOrphan
	}
	return metav1.DeletePropagationBackground
}

// awaitGone watches an object until it is gone.
func (r *run) awaitGone(o, live *unstructured.Unstructured) {
	mapping, err := r.scope.mapping(o.GroupVersionKind())
	if err != nil {
		return // it is looked at again after a while
	}
	r.s.noting.Lock()
	defer r.s.noting.Unlock()
	r.s.tracker.Track(r.root(), r.t.Dynamic, observe.Object{
		Resource: mapping.Resource, Key: client.ObjectKeyFromObject(live), Judge: readiness.StillThere, ResourceVersion: live.GetResourceVersion(),
	})
}
