// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"context"
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	addonsv1alpha1 "github.com/cluster-chandler/chandler/api/v1alpha1"
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// matchPolicy is Exact: what is written in v1beta1 doesn't come here.
// +kubebuilder:webhook:verbs=create;update,path=/mutate-addons-cluster-x-k8s-io-v1alpha1-addonstack,mutating=true,failurePolicy=fail,matchPolicy=Exact,groups=addons.cluster.x-k8s.io,resources=addonstacks,versions=v1alpha1,name=default.addonstack.addons.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1

// defaulter prepares what is written in v1alpha1. A conversion sees one object
// and nothing else; only admission sees the stored one beside it.
type defaulter struct{}

var _ admission.Defaulter[*addonsv1alpha1.AddonStack] = &defaulter{}

// Default keeps what v1alpha1 can't hold, and makes of the spec what will be read
// back: so the same manifest, written again, is no change.
func (d *defaulter) Default(ctx context.Context, s *addonsv1alpha1.AddonStack) error {
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return fmt.Errorf("AddonStack %s/%s: %w", s.Namespace, s.Name, err)
	}
	if request.Operation == admissionv1.Update {
		err = keepStoredRest(request.OldObject.Raw, s)
	} else {
		err = refuseRest(s)
	}
	if err != nil {
		return err
	}
	var hub addonsv1.AddonStack
	if err := ConvertAddonStackV1Alpha1ToHub(ctx, s, &hub); err != nil {
		return err
	}
	if err := refuseMixture(&hub); err != nil && s.DeletionTimestamp.IsZero() && !isStored(ctx, err, &request) {
		return err
	}
	s.Spec = specToSpoke(&hub.Spec)
	return nil
}

// refuseMixture refuses an add-on that v1beta1 would refuse, made of what v1alpha1 says and
// what it doesn't show: v1beta1's rules aren't asked.
func refuseMixture(hub *addonsv1.AddonStack) error {
	if len(hub.Spec.Addons) == 0 {
		return nil
	}
	a := &hub.Spec.Addons[0]
	chart := &a.Chart
	name := fmt.Sprintf("AddonStack %s/%s: add-on %q", hub.Namespace, hub.Name, a.Name)
	isChart := chart.Path != "" || chart.ConfigMap != nil || chart.Secret != nil || chart.OCI != nil || chart.Helm != nil
	switch {
	case isChart && (a.Kustomization != nil || a.Manifests != nil):
		return fmt.Errorf("%s is no chart: edit it in v1beta1", name)
	case isChart && chart.Verify != nil && chart.OCI == nil && (chart.Helm == nil || chart.Verify.Provenance == nil):
		return fmt.Errorf("%s has chart.verify, which charts from there can't have: edit it in v1beta1", name)
	}
	return nil
}

// isStored reports whether the stored object is refused for the same: then it can still be edited.
func isStored(ctx context.Context, refused error, request *admission.Request) bool {
	if request.Operation != admissionv1.Update {
		return false
	}
	var stored addonsv1alpha1.AddonStack
	var hub addonsv1.AddonStack
	if json.Unmarshal(request.OldObject.Raw, &stored) != nil || ConvertAddonStackV1Alpha1ToHub(ctx, &stored, &hub) != nil {
		return false
	}
	err := refuseMixture(&hub)
	return err != nil && err.Error() == refused.Error()
}

// keepStoredRest takes the annotation of the stored object, whatever the new one has: none, an old one,
// or one that was made by hand.
func keepStoredRest(old []byte, s *addonsv1alpha1.AddonStack) error {
	var stored metav1.PartialObjectMetadata
	if err := json.Unmarshal(old, &stored); err != nil {
		return fmt.Errorf("AddonStack %s/%s: reading the stored object: %w", s.Namespace, s.Name, err)
	}
	rest, ok := stored.Annotations[RestAnnotation]
	if !ok {
		removeRest(s)
		return nil
	}
	if s.Annotations == nil {
		s.Annotations = map[string]string{}
	}
	s.Annotations[RestAnnotation] = rest
	return nil
}

// refuseRest refuses a new object with the annotation: its contents have passed no rule of v1beta1.
func refuseRest(s *addonsv1alpha1.AddonStack) error {
	if _, ok := s.Annotations[RestAnnotation]; !ok {
		return nil
	}
	return fmt.Errorf("AddonStack %s/%s: metadata.annotations[%s] can't be set: take it out, or create the object in v1beta1, which has fields for all of it", s.Namespace, s.Name, RestAnnotation)
}
