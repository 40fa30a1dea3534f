// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"

	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/drift"
)

// OwnAlone takes the fields that are applied of an object from the manager of what had none: else they would stay
// when the chart drops them.
func (a *Applier) OwnAlone(ctx context.Context, o *unstructured.Unstructured) error {
	return a.setManagers(ctx, o, func(managed []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
		return drift.Apart(managed, a.Scope.Manager(), object.BeforeFirstApply)
	})
}

// setManagers changes who manages which fields of an object, also while controllers write to it. A change to nil
// is none.
func (a *Applier) setManagers(ctx context.Context, o *unstructured.Unstructured, change func([]metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		managed := change(o.GetManagedFields())
		if managed == nil {
			return nil
		}
		is := &metav1.PartialObjectMetadata{}
		is.SetGroupVersionKind(o.GroupVersionKind())
		is.Namespace, is.Name, is.UID, is.ResourceVersion, is.ManagedFields = o.GetNamespace(), o.GetName(), o.GetUID(), o.GetResourceVersion(), o.GetManagedFields()
		changed := is.DeepCopy()
		changed.ManagedFields = managed
		err := a.PatchMetadata(ctx, is, changed, a.Scope.Manager())
		if apierrors.IsConflict(err) {
			live, gone := a.Get(ctx, o)
			if gone == nil {
				o.Object = live.Object
			}
			return err
		}
		o.SetManagedFields(changed.ManagedFields)
		o.SetResourceVersion(changed.ResourceVersion)
		return err
	})
}

// ApplyDisplacing applies an object that is there. The server may refuse it beside items of lists that others put in
// the place of ours. Then these go with it: those of one manager after the other, until it does.
func (a *Applier) ApplyDisplacing(ctx context.Context, o *unstructured.Unstructured, live *metav1.PartialObjectMetadata, by []drift.Replacement) (*unstructured.Unstructured, error) {
	if len(by) == 0 {
		return a.ApplyOwn(ctx, o, live.UID)
	}
	var result *unstructured.Unstructured
	for _, items := range by {
		displaced := live.DeepCopy()
		displaced.ManagedFields = items.Managed
		err := a.PatchMetadata(ctx, live, displaced, a.Scope.Manager())
		if apierrors.IsConflict(err) {
			return nil, ErrAnother
		}
		if err != nil {
			return nil, err
		}
		if result, err = a.ApplyOwn(ctx, o, live.UID); !apierrors.IsInvalid(err) {
			return result, err
		}
		live = displaced
	}
	return a.ApplyOwn(ctx, o, live.UID)
}
