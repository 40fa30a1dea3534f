// SPDX-License-Identifier: Apache-2.0

// Package conversion converts between v1beta1, which is the hub and is stored, and v1alpha1, a form for
// one chart. The guarantees for users are in docs/design/conversion.md.
package conversion

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	addonsv1alpha1 "github.com/cluster-chandler/chandler/api/v1alpha1"
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// AddonStack makes the converter of AddonStacks, as the conversion endpoint of a
// manager takes it.
var AddonStack = conversion.NewHubSpokeConverter(&addonsv1.AddonStack{},
	conversion.NewSpokeConverter(&addonsv1alpha1.AddonStack{}, ConvertAddonStackHubToV1Alpha1, ConvertAddonStackV1Alpha1ToHub),
)

// ConvertAddonStackHubToV1Alpha1 converts a hub AddonStack to a v1alpha1 AddonStack.
// It can't fail on what is stored: a LIST would fail with it.
func ConvertAddonStackHubToV1Alpha1(_ context.Context, src *addonsv1.AddonStack, dst *addonsv1alpha1.AddonStack) error {
	src = src.DeepCopy()
	dst.ObjectMeta = src.ObjectMeta
	dst.Spec = specToSpoke(&src.Spec)
	dst.Status = statusToSpoke(&src.Status)
	return keepRest(src, dst)
}

// ConvertAddonStackV1Alpha1ToHub converts a v1alpha1 AddonStack to a hub AddonStack:
// what v1alpha1 can't hold comes from the annotation, all else from the fields.
func ConvertAddonStackV1Alpha1ToHub(_ context.Context, src *addonsv1alpha1.AddonStack, dst *addonsv1.AddonStack) error {
	src = src.DeepCopy()
	dst.ObjectMeta = src.ObjectMeta
	rest, err := takeRest(dst)
	if err != nil {
		return fmt.Errorf("AddonStack %s/%s: %w", src.Namespace, src.Name, err)
	}
	dst.Spec, dst.Status = rest.Spec, rest.Status
	if err := editSpec(&dst.Spec, &src.Spec); err != nil {
		return fmt.Errorf("AddonStack %s/%s: %w", src.Namespace, src.Name, err)
	}
	editStatus(&dst.Status, &src.Status)
	return nil
}

func statusToSpoke(hub *addonsv1.AddonStackStatus) addonsv1alpha1.AddonStackStatus {
	spoke := addonsv1alpha1.AddonStackStatus{
		Conditions:         hub.Conditions,
		ObservedGeneration: hub.ObservedGeneration,
		LatestRevision:     hub.LatestRevision,
	}
	if c := hub.Clusters; c != nil {
		spoke.Clusters = &addonsv1alpha1.ClusterCounts{Matching: c.Total, Ready: c.Ready, Failed: c.Failed, Waiting: c.Waiting}
	}
	return spoke
}

// editStatus writes into the hub what v1alpha1 can hold, and nothing else.
func editStatus(hub *addonsv1.AddonStackStatus, spoke *addonsv1alpha1.AddonStackStatus) {
	hub.Conditions = spoke.Conditions
	hub.ObservedGeneration = spoke.ObservedGeneration
	hub.LatestRevision = spoke.LatestRevision
	hub.Clusters = nil
	if c := spoke.Clusters; c != nil {
		hub.Clusters = &addonsv1.ClusterCounts{Total: c.Matching, Ready: c.Ready, Failed: c.Failed, Waiting: c.Waiting}
	}
}

// SetupWithManager makes the manager's webhook server convert (/convert), and admit what is written in
// v1alpha1. It adds v1alpha1 to the manager's scheme.
func SetupWithManager(mgr manager.Manager) error {
	if err := addonsv1alpha1.AddToScheme(mgr.GetScheme()); err != nil {
		return fmt.Errorf("adding v1alpha1 to the scheme: %w", err)
	}
	return ctrl.NewWebhookManagedBy(mgr, &addonsv1alpha1.AddonStack{}).
		WithConverter(AddonStack).
		WithDefaulter(&defaulter{}, admission.DefaulterRemoveUnknownOrOmitableFields).
		Complete()
}
