// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// orRecreate returns the failure to apply an object. If that is for a field that can't be changed,
// and the add-on's policy allows it, the object is deleted, to be created again once it is gone.
// Only a single object is created again at a time.
func (s *Step) orRecreate(ctx context.Context, o *unstructured.Unstructured, err error) error {
	key := record.KeyOf(o)
	f := s.Hidden.FailureOf(key, err)
	if f.Reason != object.ReasonImmutableField || !s.Recreate || !holdsNothing(o.GroupVersionKind().GroupKind()) {
		return f
	}
	live, err := s.Applier.Get(ctx, o)
	if apierrors.IsNotFound(err) {
		return object.Postpone(key, "it is made again")
	}
	if err != nil {
		return err
	}
	if !MayRecreate(live, s.Applier.Scope.Release) {
		return f
	}
	if first := s.firstRecreated(key); first != key {
		return object.Postpone(key, fmt.Sprintf("it is made again after %s", first))
	}
	if going, err := s.Applier.Scope.Observed(o, live, readiness.StillThere); err == nil { // else it is looked at again after a while
		s.Watch(going)
	}
	if live.GetDeletionTimestamp() == nil {
		if err := s.Applier.Delete(ctx, live, live.GetUID(), propagation(o, live)); err != nil {
			return err
		}
	}
	return object.Postpone(key, "a field is to change that can't be changed: the object was deleted, and is made again once it is gone")
}

// MayRecreate reports whether an object of a release may be deleted to be made again.
func MayRecreate(live *unstructured.Unstructured, release record.Release) bool {
	return holdsNothing(live.GroupVersionKind().GroupKind()) && object.OwnerOf(&metav1.ObjectMeta{Labels: live.GetLabels()}) == release &&
		live.GetAnnotations()[record.ResourcePolicyAnnotation] != record.ResourcePolicyKeep
}

// holdsNothing reports whether objects of a kind may be deleted to be made again. Objects that
// hold data of people, as custom resources can, may not be. Neither may those whose deletion
// takes others along.
func holdsNothing(gk schema.GroupKind) bool {
	return object.IsBuiltin(gk) && gk != object.CRDKind && gk != object.NamespaceKind && gk != object.ClaimKind && gk != object.VolumeKind
}

// firstRecreated returns the object that is made again now: the given one, unless there is another.
func (s *Step) firstRecreated(key record.ObjectKey) record.ObjectKey {
	s.Progress.mu.Lock()
	defer s.Progress.mu.Unlock()
	if s.Progress.recreates == (record.ObjectKey{}) {
		s.Progress.recreates, s.Progress.recreatesSince = key, s.Patience.Clock.Now()
	}
	return s.Progress.recreates
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
