// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// sourcesAwaited says it of a spec that waits for versions or its bundle: each source
// that it waits for says why. Of those that the revision in force has as well its
// clusters tell; it may be nil.
func sourcesAwaited(s *addonsv1.AddonStack, inForce *addonsv1.AddonStackSpec, clusters []*addonsv1.ClusterAddon, f *following) []addonsv1.StackSource {
	spec := f.pins.Into(&s.Spec)
	r := newSourceReport(s, spec, f)
	former := map[string]string{}
	if inForce != nil {
		for i := range inForce.Addons {
			former[inForce.Addons[i].Name] = reference.AddonOf(s.Namespace, &inForce.Addons[i], inForce.Source).String()
		}
		if len(spec.Addons) == 0 { // those of the bundle, as it was
			spec.Addons = inForce.Addons
		}
	}
	if spec.Source != nil {
		r.add(addonsv1.FollowedSource, reference.BundleOf(s.Namespace, spec.Source), f.bundleCondition())
	}
	for i := range spec.Addons {
		addon := &spec.Addons[i]
		ref, c := reference.AddonOf(s.Namespace, addon, spec.Source), notAsked()
		if former[addon.Name] == ref.String() {
			c = availability(addon.Name, s, clusters)
		}
		r.add(addon.Name, ref, c)
	}
	return r.sources
}

// bundleCondition is what is known of a bundle that a spec waits for, or could wait for.
func (f *following) bundleCondition() metav1.Condition {
	switch {
	case f.bundle == nil:
		return metav1.Condition{Status: metav1.ConditionTrue, Reason: addonsv1.SourceAvailableReason}
	case f.bundle.Reason == failure.ArtifactPending:
		return metav1.Condition{Status: metav1.ConditionUnknown, Reason: f.bundle.Reason, Message: shorten(ofBundle(f.bundle))}
	}
	return metav1.Condition{Status: metav1.ConditionFalse, Reason: f.bundle.Reason, Message: shorten(ofBundle(f.bundle))}
}
