// SPDX-License-Identifier: Apache-2.0

package result

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/reasons"
)

// StateOf sums up the phases of a stack's add-ons. A release that isn't proven is left as it is, and no part of the stack:
// whoever can write Secrets somewhere in the cluster may have made its record.
func StateOf(stack string, addons []addonsv1.AddonStatus) addonsv1.StackState {
	has := map[addonsv1.AddonPhase]bool{}
	for i := range addons {
		if addons[i].Stack == stack && addons[i].Reason != reasons.StackUnknown {
			has[addons[i].Phase] = true
		}
	}
	switch {
	case has[addonsv1.AddonFailed]:
		return addonsv1.StackFailed
	case has[addonsv1.AddonUnassigned]:
		return addonsv1.StackUnknown
	case has[addonsv1.AddonInstalling], has[addonsv1.AddonUpgrading], has[addonsv1.AddonRemoving]:
		return addonsv1.StackProgressing
	case has[addonsv1.AddonDegraded]:
		return addonsv1.StackDegraded
	case has[addonsv1.AddonPending]:
		return addonsv1.StackPending
	}
	return addonsv1.StackReady
}

// TimeOf returns a time as the API keeps it, in whole seconds.
func TimeOf(now time.Time) metav1.Time { return metav1.NewTime(now.Truncate(time.Second)) }

// HasPaused reports whether an add-on waits until its stack is resumed.
func HasPaused(name string, addons []addonsv1.AddonStatus) bool {
	return slices.ContainsFunc(addons, func(a addonsv1.AddonStatus) bool { return a.Stack == name && a.Reason == reasons.StackPaused })
}
