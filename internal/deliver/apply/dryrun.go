// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/drift"
	"github.com/cluster-chandler/chandler/internal/message"
)

// Changes returns what was changed of an object, by a dry run, and what that comes to.
func (a *Applier) Changes(ctx context.Context, o *unstructured.Unstructured, live *metav1.PartialObjectMetadata) ([]drift.Change, *unstructured.Unstructured, error) {
	applied, rolled, err := a.DryRun(ctx, o, live.UID)
	if err != nil {
		return nil, nil, err
	}
	return a.ChangesBy(applied, rolled, live), applied, nil
}

// ChangesBy returns what was changed of an object, by the answer to a dry run.
func (a *Applier) ChangesBy(applied *unstructured.Unstructured, rolled bool, live *metav1.PartialObjectMetadata) []drift.Change {
	changes := drift.Changes(live.ManagedFields, applied.GetManagedFields(), a.Scope.Manager())
	if rolled {
		changes = append(changes, drift.ChangeAt(fieldpath.MakePathOrDie("spec", "strategy", "type"), live.ManagedFields, a.Scope.Manager()))
	}
	return changes
}

// DryRun returns what would become of an object that is there, and whether its strategy was changed, which takes two steps to set
// back. It is ErrAnother if that object isn't there any more.
func (a *Applier) DryRun(ctx context.Context, o *unstructured.Unstructured, uid types.UID) (applied *unstructured.Unstructured, rolled bool, err error) {
	applied, err = a.dryRun(ctx, o, uid)
	if !isRolled(o, err) {
		return applied, false, err
	}
	if applied, err = a.dryRun(ctx, withoutStrategy(o), uid); err != nil {
		return nil, true, err
	}
	return applied, true, unstructured.SetNestedField(applied.Object, string(appsv1.RecreateDeploymentStrategyType), "spec", "strategy", "type")
}

// Differing returns the changes that are still of consequence.
func (a *Applier) Differing(ctx context.Context, changes []drift.Change, applied *unstructured.Unstructured) ([]drift.Change, error) {
	live, err := a.Get(ctx, applied)
	if err != nil {
		return nil, err
	}
	return drift.Differing(changes, live.Object, applied.Object), nil
}

func (a *Applier) dryRun(ctx context.Context, o *unstructured.Unstructured, uid types.UID) (*unstructured.Unstructured, error) {
	result := o.DeepCopy()
	result.SetUID(uid)
	err := a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(result), client.FieldOwner(a.Scope.Manager()), client.ForceOwnership, client.DryRunAll)
	if uid != "" && isOfAnother(err) {
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
