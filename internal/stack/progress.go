// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Phases of add-ons, the worst first.
var Phases = []addonsv1.AddonPhase{addonsv1.AddonFailed, addonsv1.AddonDegraded, addonsv1.AddonUnassigned, addonsv1.AddonPending,
	addonsv1.AddonRemoving, addonsv1.AddonInstalling, addonsv1.AddonUpgrading, addonsv1.AddonReady}

// Progressing returns how many clusters are on their way to their revision of a stack.
func Progressing(counts addonsv1.ClusterCounts) int32 {
	return counts.Total - counts.Ready - counts.Failed - counts.Waiting - ptr.Deref(counts.Unstarted, 0)
}
