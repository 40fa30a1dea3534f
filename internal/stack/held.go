// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"fmt"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/message"
)

// maxHeldNamed is how many add-ons of a held removal are named in a message.
const maxHeldNamed = 3

// HeldRemoval returns what of a stack is held on a cluster; nil if nothing is.
func HeldRemoval(assigned []addonsv1.StackRevision, name string) *addonsv1.HeldRemoval {
	for i := range assigned {
		if assigned[i].Name == name {
			return assigned[i].HeldRemoval
		}
	}
	return nil
}

// DescribeHeld returns what a held removal would take away from one cluster, and the ways out.
func DescribeHeld(namespace string, s *addonsv1.StackRevision) string {
	return fmt.Sprintf("%s; that would remove %s from this cluster and from others, more than the stack's removalLimit allows at once. Nothing of it is removed. %s",
		heldCause(s.Name, s.HeldRemoval.Cause), message.List(s.HeldRemoval.Addons, ", ", maxHeldNamed), HeldWaysOut(namespace, s.HeldRemoval))
}

// HeldWaysOut returns how to let a removal through on all clusters of a namespace, or not to.
func HeldWaysOut(namespace string, held *addonsv1.HeldRemoval) string {
	return fmt.Sprintf("To remove them: kubectl annotate clusteraddons -n %s --all %s=%s%s. To keep them: undo the change",
		namespace, addonsv1.ConfirmRemovalAnnotation, held.Confirmation, heldByEdit(held.Cause))
}

// heldByEdit returns how the AddonStack itself can let a removal through.
func heldByEdit(cause addonsv1.RemovalCause) string {
	const limit = "; a higher spec.removalLimit lets it through, and others after it"
	switch cause {
	case addonsv1.RemovalStackDeleted:
		return ""
	case addonsv1.RemovalAddonsDropped:
		return "; or name them in spec.allowedRemovals.addons of the AddonStack" + limit
	default:
		return "; or, if spec was edited, select the Clusters by spec.allowedRemovals.clusterSelector of the AddonStack" + limit
	}
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
