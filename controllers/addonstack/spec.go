// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	appsv1 "k8s.io/api/apps/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// newestSpec returns the spec that the newest revision keeps, an empty one if there is no revision.
func newestSpec(revisions []appsv1.ControllerRevision) (*addonsv1.AddonStackSpec, error) {
	if len(revisions) == 0 {
		return &addonsv1.AddonStackSpec{}, nil
	}
	return stack.SpecOf(&revisions[0])
}

// suspended reports whether newer versions are only reported, and not taken.
func suspended(s *addonsv1.AddonStack) bool {
	return s.Spec.Updates != nil && s.Spec.Updates.Suspend != nil && *s.Spec.Updates.Suspend
}
