// SPDX-License-Identifier: Apache-2.0

package removal

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// Report sends events of changes that are held from now on, and of confirmations that fit none.
func Report(recorder events.EventRecorder, before, after *addonsv1.ClusterAddon, cluster *member.Member) {
	for _, confirmation := range sets.List(confirmationsOf(before)) {
		if !hasHeld(before, confirmation) {
			recorder.Eventf(after, cluster.Object(), corev1.EventTypeWarning, "ConfirmationIgnored", "Assign",
				"Annotation %s=%s is of no removal that is held: see heldRemoval in spec.stacks", addonsv1.ConfirmRemovalAnnotation, confirmation)
		}
	}
	for _, s := range after.Spec.Stacks {
		if s.HeldRemoval != nil && !hasHeld(before, s.HeldRemoval.Confirmation) {
			recorder.Eventf(after, cluster.Object(), corev1.EventTypeWarning, addonsv1.RemovalHeldReason, "Assign", "%s", stack.DescribeHeld(after.Namespace, &s))
		}
	}
}

// hasHeld reports whether a removal with the confirmation is held on the cluster.
func hasHeld(ca *addonsv1.ClusterAddon, confirmation string) bool {
	return slices.ContainsFunc(ca.Spec.Stacks, func(s addonsv1.StackRevision) bool {
		return s.HeldRemoval != nil && s.HeldRemoval.Confirmation == confirmation
	})
}
