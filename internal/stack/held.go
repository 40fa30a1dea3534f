// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"fmt"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/message"
)

// DescribeHeld returns what a held removal would take away from one cluster, and the ways out.
func DescribeHeld(namespace string, s *addonsv1.StackRevision) string {
	return fmt.Sprintf("AddonStack %s %s; that would remove %s from this cluster and from others, more than the stack's removalLimit allows at once. Nothing of it is removed. %s",
		s.Name, heldCauses[s.HeldRemoval.Cause].what, message.List(s.HeldRemoval.Addons, ", ", message.Few), HeldWaysOut(namespace, s.HeldRemoval))
}

// HeldWaysOut returns how to let a removal through on all clusters of a namespace, or not to.
func HeldWaysOut(namespace string, held *addonsv1.HeldRemoval) string {
	return fmt.Sprintf("To remove them: kubectl annotate clusteraddons -n %s --all %s=%s%s. To keep them: undo the change",
		namespace, addonsv1.ConfirmRemovalAnnotation, held.Confirmation, heldCauses[held.Cause].byEdit)
}

// letsThrough says that an edit lets a removal through beside that of its cause.
const letsThrough = "; a higher spec.removalLimit lets it through, and others after it"

// heldCauses says what became of the AddonStack, and how the AddonStack itself can let a removal through.
var heldCauses = map[addonsv1.RemovalCause]struct{ what, byEdit string }{
	addonsv1.RemovalStackDeleted: {"is gone", ""},
	addonsv1.RemovalAddonsDropped: {"doesn't have some of its add-ons any more",
		"; or name them in spec.allowedRemovals.addons of the AddonStack" + letsThrough},
	addonsv1.RemovalNotSelected: {"doesn't select the Cluster any more",
		"; or, if spec was edited, select the Clusters by spec.allowedRemovals.clusterSelector of the AddonStack" + letsThrough},
}
