// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	capiconversion "sigs.k8s.io/cluster-api/util/conversion"

	addonsv1alpha1 "github.com/cluster-chandler/chandler/api/v1alpha1"
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// RestAnnotation holds, in a v1alpha1 object only, what v1alpha1 has no fields for.
const RestAnnotation = capiconversion.DataAnnotation

// tooLarge takes the place of a rest for which annotations have no room. Such an
// object can be read in v1alpha1, but not be written.
const tooLarge = `"too large: edit this object in v1beta1"`

// keepRest notes in the spoke what of the hub would be lost on the way back, if
// there is anything. The hub may be changed.
func keepRest(hub *addonsv1.AddonStack, spoke *addonsv1alpha1.AddonStack) error {
	removeRest(spoke)
	rest, err := restOf(hub, spoke)
	if err != nil || rest == nil {
		return err
	}
	if err := capiconversion.MarshalDataUnsafeNoCopy(rest, spoke); err != nil {
		return fmt.Errorf("AddonStack %s/%s: keeping what v1alpha1 can't hold: %w", hub.Namespace, hub.Name, err)
	}
	// The API server's own check: of each object in a LIST, which fails as a whole.
	if apivalidation.ValidateAnnotationsSize(spoke.Annotations) != nil {
		spoke.Annotations[RestAnnotation] = tooLarge
	}
	return nil
}

// restOf returns the parts of the hub that can't be made of the spoke alone, nil without any.
func restOf(hub *addonsv1.AddonStack, spoke *addonsv1alpha1.AddonStack) (*addonsv1.AddonStack, error) {
	var back addonsv1.AddonStack
	if err := editSpec(&back.Spec, spoke.Spec.DeepCopy()); err != nil {
		return nil, err
	}
	editStatus(&back.Status, &spoke.Status)

	rest := &addonsv1.AddonStack{}
	lossless := true
	if !equality.Semantic.DeepEqual(back.Spec, hub.Spec) {
		lossless = false
		rest.Spec = hub.Spec
		if len(hub.Spec.Addons) == 1 {
			rest.Spec.Addons[0].ValuesTemplate = "" // the spoke has it, and it may be long
		}
	}
	if !equality.Semantic.DeepEqual(back.Status, hub.Status) {
		lossless = false
		rest.Status = hub.Status
		rest.Status.Conditions = nil // the spoke has them
	}
	if lossless {
		return nil, nil
	}
	return rest, nil
}

// takeRest takes the rest out of an object's annotations.
func takeRest(from *addonsv1.AddonStack) (*addonsv1.AddonStack, error) {
	rest := &addonsv1.AddonStack{}
	if from.Annotations[RestAnnotation] == tooLarge {
		return nil, errors.New("what v1alpha1 can't hold of it is too large for an annotation: edit it in v1beta1")
	}
	if _, err := capiconversion.UnmarshalData(from, rest); err != nil {
		return nil, fmt.Errorf("metadata.annotations[%s] can't be read; the API server makes it, nobody else may: %w", RestAnnotation, err)
	}
	if len(from.Annotations) == 0 {
		from.Annotations = nil
	}
	return rest, nil
}

func removeRest(spoke *addonsv1alpha1.AddonStack) {
	delete(spoke.Annotations, RestAnnotation)
	if len(spoke.Annotations) == 0 {
		spoke.Annotations = nil
	}
}
