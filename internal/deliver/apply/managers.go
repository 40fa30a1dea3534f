// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/drift"
)

// TakeFields moves the fields that Helm, or the Cluster Stack Operator, set on an object
// to our manager before we apply it. Otherwise a field that the chart drops later would
// stay for ever, as they would still be said to want it. The same holds for those of
// other managers, whose objects are taken over.
func (a *Applier) TakeFields(ctx context.Context, live *metav1.PartialObjectMetadata, managers ...string) error {
	previous := append(object.Predecessors(&live.ObjectMeta), managers...)
	if len(previous) == 0 {
		return nil
	}
	upgraded := live.DeepCopy()
	for i := range upgraded.ManagedFields {
		if e := &upgraded.ManagedFields[i]; slices.Contains(previous, e.Manager) && e.Subresource == "" {
			e.Operation = metav1.ManagedFieldsOperationUpdate // what csaupgrade looks for
		}
	}
	if err := csaupgrade.UpgradeManagedFields(upgraded, sets.New(previous...), a.Scope.Manager()); err != nil {
		return err
	}
	if slices.Contains(previous, object.OperatorManager) {
		kept, err := object.OperatorLabels(live.ManagedFields)
		if err != nil {
			return err
		}
		upgraded.ManagedFields = append(upgraded.ManagedFields, kept...)
	}
	return a.PatchMetadata(ctx, live, upgraded, a.Scope.Manager())
}

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

// Disown makes an object no add-on's: our labels go, and our fields are
// Helm's from now on, so that `helm upgrade` can change them. An object that is kept while its
// release is removed has a note. By the note, that release may have the object again.
func (a *Applier) Disown(ctx context.Context, live *metav1.PartialObjectMetadata, kept bool) error {
	let := live.DeepCopy()
	if kept {
		metav1.SetMetaDataAnnotation(&let.ObjectMeta, object.KeptByAnnotation, a.Scope.Release.String())
	} else {
		delete(let.Annotations, object.KeptByAnnotation)
	}
	delete(let.Labels, addonsv1.AddonLabel)
	delete(let.Labels, addonsv1.AddonNamespaceLabel)
	if equality.Semantic.DeepEqual(let, live) {
		return nil
	}
	taken := object.ManagedBy(&live.ObjectMeta, object.HelmManager)
	let.ManagedFields = slices.DeleteFunc(let.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == a.Scope.Manager() && taken
	})
	for i := range let.ManagedFields {
		if let.ManagedFields[i].Manager == a.Scope.Manager() {
			let.ManagedFields[i].Manager = object.HelmManager
		}
	}
	return a.PatchMetadata(ctx, live, let, object.HelmManager)
}

// PatchMetadata changes an object's metadata as a manager, if the object is still as it was read.
func (a *Applier) PatchMetadata(ctx context.Context, live, changed *metav1.PartialObjectMetadata, as string) error {
	patch := client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{})
	return a.Client.Patch(ctx, changed, patch, client.FieldOwner(as))
}
