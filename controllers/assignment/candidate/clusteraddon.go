// SPDX-License-Identifier: Apache-2.0

package candidate

import (
	"time"

	"sigs.k8s.io/cluster-api/util/annotations"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/reasons"
)

// IsInstalled reports whether the add-on has a release with objects that may be removed, and isn't already.
func IsInstalled(a *addonsv1.AddonStatus) bool {
	return a.Revision > 0 && a.Objects != nil && a.Phase != addonsv1.AddonRemoving && a.Reason != reasons.StackUnknown
}

// FirstReport is how long a new ClusterAddon may take to report what its cluster runs.
const FirstReport = time.Minute

// IsUnreported reports whether a ClusterAddon has just been made, and hasn't said yet what its cluster runs. It may have
// been made again, for a cluster that runs much: that would be removed without being counted.
func IsUnreported(ca *addonsv1.ClusterAddon, now time.Time) bool {
	return !HasReported(ca) && now.Sub(ca.CreationTimestamp.Time) < FirstReport
}

// HasReported reports whether a ClusterAddon says what its cluster runs.
func HasReported(ca *addonsv1.ClusterAddon) bool {
	return ca.Status.ObservedUID == ca.UID && ca.Status.ObservedGeneration > 0
}

// IsPaused reports whether the cluster or its ClusterAddon is paused.
func IsPaused(cluster *member.Member, ca *addonsv1.ClusterAddon) bool {
	return cluster.Paused || annotations.HasPaused(ca)
}
