// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// firstReport is how long a new ClusterAddon may take to report what its cluster runs.
const firstReport = time.Minute

// isUnreported reports whether a ClusterAddon has just been made, and hasn't said yet what its cluster runs. It may have
// been made again, for a cluster that runs much: that would be removed without being counted.
func isUnreported(ca *addonsv1.ClusterAddon, now time.Time) bool {
	return !hasReported(ca) && now.Sub(ca.CreationTimestamp.Time) < firstReport
}

// hasReported reports whether a ClusterAddon says what its cluster runs.
func hasReported(ca *addonsv1.ClusterAddon) bool {
	return ca.Status.ObservedUID == ca.UID && ca.Status.ObservedGeneration > 0
}

// drops reports whether the plan takes add-ons of an assigned stack away from the cluster.
func (p *plan) drops(previous addonsv1.StackRevision) bool {
	next := stack.AssignedRevision(p.wanted, previous.Name)
	c := find(p.candidates, previous.Name)
	if next == "" || c == nil {
		return previous.Revision != ""
	}
	return len(c.dropped(previous.Revision, next)) > 0
}
