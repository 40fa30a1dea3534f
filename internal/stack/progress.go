// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Progressing returns how many clusters are on their way to their revision of a stack.
func Progressing(counts addonsv1.ClusterCounts) int32 {
	return counts.Total - counts.Ready - counts.Failed - counts.Waiting - ptr.Deref(counts.Unstarted, 0)
}
