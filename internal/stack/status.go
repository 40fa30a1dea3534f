// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Blocking returns the condition that says why nothing can be done on a cluster now, nil if there is none.
func Blocking(ca *addonsv1.ClusterAddon) *metav1.Condition {
	for _, kind := range []string{addonsv1.DeletingCondition, addonsv1.PausedCondition} {
		if c := meta.FindStatusCondition(ca.Status.Conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
			return c
		}
	}
	for _, kind := range []string{addonsv1.ControlPlaneInitializedCondition, addonsv1.ClusterReachableCondition} {
		if c := meta.FindStatusCondition(ca.Status.Conditions, kind); c != nil && c.Status != metav1.ConditionTrue {
			return c
		}
	}
	c := meta.FindStatusCondition(ca.Status.Conditions, addonsv1.AddonsReadyCondition)
	if c != nil && c.Reason == addonsv1.RecordsUnreadableReason {
		return c
	}
	return nil
}

// Phases of add-ons, the worst first.
var Phases = []addonsv1.AddonPhase{addonsv1.AddonFailed, addonsv1.AddonDegraded, addonsv1.AddonUnassigned, addonsv1.AddonPending,
	addonsv1.AddonRemoving, addonsv1.AddonInstalling, addonsv1.AddonUpgrading, addonsv1.AddonReady}

// Progressing returns how many clusters are on their way to their revision of a stack.
func Progressing(counts addonsv1.ClusterCounts) int32 {
	return counts.Total - counts.Ready - counts.Failed - counts.Waiting - ptr.Deref(counts.Unstarted, 0)
}
