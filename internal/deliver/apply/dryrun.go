// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/drift"
)

// Changes returns what was changed of an object, by a dry run, and what that comes to.
func (a *Applier) Changes(ctx context.Context, o *unstructured.Unstructured, live *metav1.PartialObjectMetadata) ([]drift.Change, *unstructured.Unstructured, error) {
	applied, err := a.dryRun(ctx, o, live)
	rolled := isRolled(o, err)
	if rolled { // its strategy was changed, and takes two steps to set back
		applied, err = a.dryRun(ctx, withoutStrategy(o), live)
	}
	if err != nil {
		return nil, nil, err
	}
	changes := drift.Changes(live.ManagedFields, applied.GetManagedFields(), a.Scope.Manager())
	if rolled {
		changes = append(changes, drift.ChangeAt(fieldpath.MakePathOrDie("spec", "strategy", "type"), live.ManagedFields, a.Scope.Manager()))
		if err := unstructured.SetNestedField(applied.Object, string(appsv1.RecreateDeploymentStrategyType), "spec", "strategy", "type"); err != nil {
			return nil, nil, err
		}
	}
	return changes, applied, nil
}

// Differing returns the changes that are still of consequence.
func (a *Applier) Differing(ctx context.Context, changes []drift.Change, applied *unstructured.Unstructured) ([]drift.Change, error) {
	live, err := a.Get(ctx, applied)
	if err != nil {
		return nil, err
	}
	return drift.Differing(changes, live.Object, applied.Object), nil
}

// dryRun returns what would become of an object that is there. It is ErrAnother if that isn't
// there any more.
func (a *Applier) dryRun(ctx context.Context, o *unstructured.Unstructured, live *metav1.PartialObjectMetadata) (*unstructured.Unstructured, error) {
	result := o.DeepCopy()
	result.SetUID(live.UID)
	err := a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(result), client.FieldOwner(a.Scope.Manager()), client.ForceOwnership, client.DryRunAll)
	if isOfAnother(err) {
		return nil, ErrAnother
	}
	return result, err
}

// WithoutIgnored returns the object without the fields that rules leave to the managers that own them.
// If there are any, it also returns what the add-on would own with them: once the rules are
// gone, that is what is missing.
func (a *Applier) WithoutIgnored(ctx context.Context, o *unstructured.Unstructured, entry record.Entry, ignore drift.Rules) (*unstructured.Unstructured, drift.Fields, error) {
	rules := ignore.For(o)
	if len(rules) == 0 {
		return o, 0, nil
	}
	live, err := a.Metadata(ctx, entry)
	if err != nil {
		return o, 0, client.IgnoreNotFound(err)
	}
	changes, applied, err := a.Changes(ctx, o, live)
	switch {
	case errors.Is(err, ErrAnother), apierrors.IsInvalid(err): // which is what the apply is about to say
		return o, 0, nil
	case err != nil:
		return nil, 0, err
	}
	ignored, _ := rules.Split(o, changes)
	if ignored = drift.Owned(ignored); len(ignored) == 0 {
		return o, 0, nil
	}
	return drift.Without(o, ignored), drift.FieldsOf(applied.GetManagedFields(), a.Scope.Manager()), nil
}
