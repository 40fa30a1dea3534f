// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"fmt"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/message"
)

// maxHeldNamed is how many add-ons of a held removal are named in a message.
const maxHeldNamed = 3

// DescribeHeld returns what a held removal would take away from one cluster, and the ways out.
func DescribeHeld(namespace string, s *addonsv1.StackRevision) string {
	return fmt.Sprintf("%s; that would remove %s from this cluster and from others, more than the stack's removalLimit allows at once. Nothing is removed. %s",
		heldCause(s.Name, s.HeldRemoval.Cause), message.List(s.HeldRemoval.Addons, ", ", maxHeldNamed), HeldWaysOut(namespace, s.HeldRemoval.Confirmation))
}

// HeldWaysOut returns how to confirm a removal for all clusters of a namespace, or not to.
func HeldWaysOut(namespace, confirmation string) string {
	return fmt.Sprintf("To remove them: kubectl annotate clusteraddons -n %s --all %s=%s. To keep them: undo the change",
		namespace, addonsv1.ConfirmRemovalAnnotation, confirmation)
}

func heldCause(stack string, cause addonsv1.RemovalCause) string {
	switch cause {
	case addonsv1.RemovalStackDeleted:
		return fmt.Sprintf("AddonStack %s is gone", stack)
	case addonsv1.RemovalAddonsDropped:
		return fmt.Sprintf("AddonStack %s doesn't have some of its add-ons any more", stack)
	default:
		return fmt.Sprintf("AddonStack %s doesn't select the Cluster any more", stack)
	}
}
