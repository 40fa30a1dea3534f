// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/reasons"
)

// toldBy is the status that events are about by now. An add-on that somebody was told
// of keeps that while its source is asked again, or its cluster is: what then comes out
// is no news if it is the same. What another stack had isn't its own.
func toldBy(before, after *addonsv1.ClusterAddonStatus) addonsv1.ClusterAddonStatus {
	told := *after.DeepCopy()
	for i, s := range told.Addons {
		was := formerOf(s, before.Addons)
		if was.Stack == s.Stack && was.Revision == s.Revision && waitsWith(was, s) {
			told.Addons[i] = was
		}
	}
	return told
}

// waitsWith says whether what was told of an add-on may still be so after it has waited.
func waitsWith(told, s addonsv1.AddonStatus) bool {
	if s.Reason == reasons.Retrying && s.Phase == told.Phase {
		return true
	}
	return isPassing(s) && reasons.Of(told.Reason).Warns(told.Phase) && told.Phase != addonsv1.AddonUnassigned
}

// isPassing reports whether an add-on waits for what comes by itself.
func isPassing(s addonsv1.AddonStatus) bool {
	return s.Phase == addonsv1.AddonPending && reasons.Of(s.Reason).Is(reasons.Passing)
}
