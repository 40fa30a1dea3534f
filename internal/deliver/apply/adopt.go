// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/drift"
	"github.com/cluster-chandler/chandler/internal/message"
)

// Differs refuses an object if applying it would change a field of it beside our labels. The
// server is asked, so that defaults and other spellings don't count. Values aren't told: they may
// be secret.
func (a *Applier) Differs(ctx context.Context, o *unstructured.Unstructured, live *metav1.PartialObjectMetadata) error {
	changes, err := a.overwritten(ctx, object.Unlabelled(o), live)
	if len(changes) == 0 || err != nil {
		return err
	}
	fields := make([]string, 0, len(changes))
	for _, c := range changes {
		field := c.Path.String()
		if len(c.Managers) > 0 {
			field += ", which " + strings.Join(c.Managers, " and ") + " set"
		}
		fields = append(fields, field)
	}
	return object.Reject(record.KeyOf(o), object.ReasonObjectExists, fmt.Sprintf(
		"it exists already, and the add-on would change %s. Change the add-on's values, or set "+object.AdoptionPolicyField+" to Adopt",
		message.FirstFew(fields)))
}

// overwritten returns the fields of an object that is there which would have another value once it is applied.
func (a *Applier) overwritten(ctx context.Context, o *unstructured.Unstructured, live *metav1.PartialObjectMetadata) ([]drift.Change, error) {
	changes, applied, err := a.Changes(ctx, o, live)
	if err != nil {
		return nil, err
	}
	return a.Differing(ctx, changes, applied)
}

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

// Share sets fields of a namespace that isn't this add-on's, without its labels, and returns it as the server has it.
// A field that another manager has set differently stays as it is.
func (a *Applier) Share(ctx context.Context, o *unstructured.Unstructured, live *metav1.PartialObjectMetadata) (*unstructured.Unstructured, error) {
	shared := object.Unlabelled(o)
	theirs, err := a.overwritten(ctx, shared, live)
	if err != nil {
		return nil, err
	}
	return a.Apply(ctx, drift.Without(shared, drift.Owned(theirs)), false)
}
