// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// IsProgress reports whether the statuses differ in nothing but how far add-ons are that are on their way, of which some may have
// arrived. So it isn't progress if the last one of an AddonStack is ready, or one fails.
func IsProgress(before, after *addonsv1.ClusterAddonStatus) bool {
	isSame := func(was, is addonsv1.AddonStatus) bool {
		if was.Name != is.Name || was.Namespace != is.Namespace || was.Stack != is.Stack {
			return false
		}
		return isOnItsWay(was) && (isOnItsWay(is) || is.Phase == addonsv1.AddonReady) || equality.Semantic.DeepEqual(was, is)
	}
	if !slices.EqualFunc(before.Addons, after.Addons, isSame) {
		return false
	}
	return !equality.Semantic.DeepEqual(before, after) && equality.Semantic.DeepEqual(besideProgress(before), besideProgress(after))
}

// isOnItsWay reports whether an add-on is worked on, or waits for what comes by itself.
func isOnItsWay(s addonsv1.AddonStatus) bool {
	switch s.Phase {
	case addonsv1.AddonInstalling, addonsv1.AddonUpgrading, addonsv1.AddonRemoving:
		return true
	}
	return isPassing(s)
}

// besideProgress returns a copy without add-ons, and without what is said of them while they are on their way.
func besideProgress(s *addonsv1.ClusterAddonStatus) *addonsv1.ClusterAddonStatus {
	s = s.DeepCopy()
	s.Addons, s.ReadyAddons, s.History = nil, "", nil
	for i := range s.Conditions {
		if s.Conditions[i].Reason == addonsv1.AddonsProgressingReason {
			s.Conditions[i].Message = ""
		}
	}
	return s
}
