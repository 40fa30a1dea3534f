// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/member"
)

// Selects reports whether the spec of a stack in a namespace selects the cluster. It fails if the
// selector can't be used: then nothing is known.
//
// A switch of the ClusterClass upgrades add-ons: another stack selects the Cluster then, and takes
// over the releases that both have.
func Selects(namespace string, spec *addonsv1.AddonStackSpec, cluster *member.Member) (bool, error) {
	if namespace != cluster.Namespace || !slices.Contains(kindsOf(spec), cluster.Kind) {
		return false, nil
	}
	if spec.ClusterSelector == nil && len(spec.ClassNames) == 0 {
		return false, nil
	}
	if spec.ClusterSelector != nil {
		selector, err := metav1.LabelSelectorAsSelector(spec.ClusterSelector)
		if err != nil {
			return false, fmt.Errorf("spec.clusterSelector: %w", err)
		}
		if !selector.Matches(labels.Set(cluster.Labels)) {
			return false, nil
		}
	}
	if len(spec.ClassNames) > 0 {
		return cluster.ClassName != "" && slices.Contains(spec.ClassNames, cluster.ClassName), nil
	}
	return true, nil
}

// kindsOf returns the kinds that a spec selects from.
func kindsOf(spec *addonsv1.AddonStackSpec) []string {
	if len(spec.ClusterKinds) == 0 {
		return []string{addonsv1.KindCluster}
	}
	return spec.ClusterKinds
}

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

// LeavesAddons reports whether it was seen in the workload cluster that the add-ons of a stack with the policy Orphan are
// left behind. The status has to be about the ClusterAddon as it is now.
func LeavesAddons(ca *addonsv1.ClusterAddon, name string) bool {
	return ca.Status.ObservedGeneration == ca.Generation && ca.Status.ObservedUID == ca.UID && slices.ContainsFunc(ca.Status.Stacks, func(s addonsv1.StackStatus) bool {
		return s.Name == name && s.RecordedDeletionPolicy == addonsv1.DeletionPolicyOrphan
	})
}

// MaxOfCluster is how many stacks a cluster can run (spec.stacks of its ClusterAddon, MaxItems).
const MaxOfCluster = 64

// IsLeftOut reports whether a cluster runs as many stacks as it can, without this one.
func IsLeftOut(ca *addonsv1.ClusterAddon, name string) bool {
	return len(ca.Spec.Stacks) >= MaxOfCluster && !IsAssigned(ca.Spec.Stacks, name)
}

// Phases of add-ons, the worst first.
var Phases = []addonsv1.AddonPhase{addonsv1.AddonFailed, addonsv1.AddonDegraded, addonsv1.AddonUnassigned, addonsv1.AddonPending,
	addonsv1.AddonRemoving, addonsv1.AddonInstalling, addonsv1.AddonUpgrading, addonsv1.AddonReady}

// Progressing returns how many clusters are on their way to their revision of a stack.
func Progressing(counts addonsv1.ClusterCounts) int32 {
	return counts.Total - counts.Ready - counts.Failed - counts.Waiting - ptr.Deref(counts.Unstarted, 0)
}

// StatusOf returns what a ClusterAddon's status says of a stack, nothing if it isn't there.
func StatusOf(status *addonsv1.ClusterAddonStatus, name string) *addonsv1.StackStatus {
	if at := slices.IndexFunc(status.Stacks, func(s addonsv1.StackStatus) bool { return s.Name == name }); at >= 0 {
		return &status.Stacks[at]
	}
	return &addonsv1.StackStatus{}
}
