// SPDX-License-Identifier: Apache-2.0

package candidate

import (
	"slices"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/rollout"
)

// Returning returns the revision of a stack that a ClusterAddon comes back to which was made again: the newest one that the
// cluster's release records name, "" for none. It returns waits while the ClusterAddon may report that yet.
//
// A cluster may name any revision. Those that are the stack's own and weren't rejected count: one that its cluster didn't
// have gets ahead of the rollout on that cluster alone.
func Returning(ca *addonsv1.ClusterAddon, name string, revisions []rollout.Revision, now time.Time) (revision string, waits bool) {
	if ca.Name == "" || !HasReported(ca) {
		return "", ca.Name == "" || IsUnreported(ca, now)
	}
	for i := range revisions {
		isNamed := func(a addonsv1.AddonStatus) bool { return a.Stack == name && a.RecordedRevision == revisions[i].Name }
		if !revisions[i].Rejected && slices.ContainsFunc(ca.Status.Addons, isNamed) {
			return revisions[i].Name, false
		}
	}
	return "", false
}
