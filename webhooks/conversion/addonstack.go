// SPDX-License-Identifier: Apache-2.0

// Package conversion converts between v1beta1, which is the hub and is stored, and v1alpha1, the older
// version. The guarantees for users are in docs/design/conversion.md.
package conversion

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	capiconversion "sigs.k8s.io/cluster-api/util/conversion"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	addonsv1alpha1 "github.com/cluster-chandler/chandler/api/v1alpha1"
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet/jsonsize"
)

const (
	// noRoom takes the place of all annotations of an object where these leave no room for the fields that v1alpha1
	// lacks. The object can be read in v1alpha1, and not be written.
	noRoom = `"no room: edit this object in v1beta1"`
	// maxValues is how many values an annotation may have, keys included. "{}," may become a struct of 1 KiB.
	maxValues = 1000
)

// AddonStack makes the converter of AddonStacks, as the conversion endpoint of a
// manager takes it.
var AddonStack = conversion.NewHubSpokeConverter(&addonsv1.AddonStack{},
	conversion.NewSpokeConverter(&addonsv1alpha1.AddonStack{}, ConvertAddonStackHubToV1Alpha1, ConvertAddonStackV1Alpha1ToHub),
)

// ConvertAddonStackHubToV1Alpha1 converts a hub AddonStack to a v1alpha1 AddonStack, which takes over the parts of src.
// It can't fail on what is stored: a LIST would fail with it.
func ConvertAddonStackHubToV1Alpha1(_ context.Context, src *addonsv1.AddonStack, dst *addonsv1alpha1.AddonStack) error {
	dst.ObjectMeta, dst.Status = src.ObjectMeta, src.Status
	dst.Spec = addonsv1alpha1.AddonStackSpec{
		ClusterSelector: src.Spec.ClusterSelector,
		ClassNames:      src.Spec.ClassNames,
		Bundle:          src.Spec.Source,
		Addons:          src.Spec.Addons,
		DeletionPolicy:  src.Spec.DeletionPolicy,
		Removals:        addonsv1alpha1.Removals{Limit: src.Spec.RemovalLimit, Allowed: src.Spec.AllowedRemovals},
		Drift:           src.Spec.Drift,
	}
	delete(dst.Annotations, capiconversion.DataAnnotation)
	lacking := Lacking(src.Spec)
	if equality.Semantic.DeepEqual(lacking, addonsv1.AddonStackSpec{}) {
		return nil
	}
	if err := capiconversion.MarshalDataUnsafeNoCopy(&addonsv1.AddonStack{Spec: lacking}, dst); err != nil {
		return fmt.Errorf("AddonStack %s/%s: keeping the fields that v1alpha1 lacks: %w", src.Namespace, src.Name, err)
	}
	// The API server checks this of each object in a LIST, which fails as a whole.
	if apivalidation.ValidateAnnotationsSize(dst.Annotations) != nil {
		dst.Annotations = map[string]string{capiconversion.DataAnnotation: noRoom}
	}
	return nil
}

// ConvertAddonStackV1Alpha1ToHub converts a v1alpha1 AddonStack to a hub AddonStack, which takes over the parts of src.
// The annotation gives the fields that v1alpha1 lacks, and no others. Anybody can write it, and the API server asks
// none of v1beta1's rules about it: so package webhooks lets no write in v1alpha1 change these fields.
func ConvertAddonStackV1Alpha1ToHub(_ context.Context, src *addonsv1alpha1.AddonStack, dst *addonsv1.AddonStack) error {
	const wayOut = "leave it as the API server shows it, or edit the object in v1beta1"
	data := src.Annotations[capiconversion.DataAnnotation]
	if jsonsize.Values([]byte(data)) > maxValues {
		return fmt.Errorf("AddonStack %s/%s: metadata.annotations[%s] has more than %d values: %s",
			src.Namespace, src.Name, capiconversion.DataAnnotation, maxValues, wayOut)
	}
	restored := &addonsv1.AddonStack{}
	if _, err := capiconversion.UnmarshalData(src, restored); err != nil {
		return fmt.Errorf("AddonStack %s/%s: metadata.annotations[%s] can't be read: %s: %w",
			src.Namespace, src.Name, capiconversion.DataAnnotation, wayOut, err)
	}
	dst.ObjectMeta, dst.Spec, dst.Status = src.ObjectMeta, restored.Spec, src.Status
	set(&dst.Spec, &src.Spec)
	return nil
}

// Lacking returns a spec with the fields that v1alpha1 lacks, and no others.
func Lacking(spec addonsv1.AddonStackSpec) addonsv1.AddonStackSpec {
	set(&spec, &addonsv1alpha1.AddonStackSpec{})
	return spec
}

// set writes all fields of a v1alpha1 spec into a hub spec, and leaves those that v1alpha1 lacks.
func set(hub *addonsv1.AddonStackSpec, spoke *addonsv1alpha1.AddonStackSpec) {
	hub.ClusterSelector = spoke.ClusterSelector
	hub.ClassNames = spoke.ClassNames
	hub.Source = spoke.Bundle
	hub.Addons = spoke.Addons
	hub.DeletionPolicy = spoke.DeletionPolicy
	hub.RemovalLimit = spoke.Removals.Limit
	hub.AllowedRemovals = spoke.Removals.Allowed
	hub.Drift = spoke.Drift
}

// SetupWithManager makes the manager's webhook server convert (/convert). It adds v1alpha1 to the manager's scheme.
func SetupWithManager(mgr manager.Manager) error {
	if err := addonsv1alpha1.AddToScheme(mgr.GetScheme()); err != nil {
		return fmt.Errorf("adding v1alpha1 to the scheme: %w", err)
	}
	return ctrl.NewWebhookManagedBy(mgr, &addonsv1alpha1.AddonStack{}).WithConverter(AddonStack).Complete()
}
