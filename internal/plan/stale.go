// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Basis is what a plan is of, as it is now.
type Basis struct {
	// Revision that the plan would be of; "" if there is none any more.
	Revision string
	// Replaced are the objects with values that the revision pins, and that have others now, as "Secret/name".
	Replaced string
	// Clusters are the names of those that the plan would be about.
	Clusters []string
}

// StaleSince returns why a finished plan isn't of the present any more, as a reason of the condition Stale; [addonsv1.PlanCurrentReason]
// if it is.
func StaleSince(s *addonsv1.AddonPlanStatus, now Basis) (reason, text string) {
	switch {
	case now.Revision == "":
		return addonsv1.PlanTargetChangedReason, fmt.Sprintf("%s isn't there any more", s.Revision)
	case s.Revision != now.Revision:
		return addonsv1.PlanTargetChangedReason, fmt.Sprintf("the change is %s now, and was %s", now.Revision, s.Revision)
	case now.Replaced != "":
		return addonsv1.PlanInputsChangedReason, fmt.Sprintf("%s pins other values than these have now: %s", s.Revision, now.Replaced)
	case s.ClustersDigest != DigestOf(now.Clusters):
		return addonsv1.PlanClustersChangedReason, fmt.Sprintf("the plan is of %d clusters, and others are selected now: %d", s.Clusters.Total, len(now.Clusters))
	}
	return addonsv1.PlanCurrentReason, ""
}

// DigestOf returns a digest of names, whatever their order.
func DigestOf(names []string) string {
	sum := sha256.Sum256([]byte(strings.Join(slices.Sorted(slices.Values(names)), "\n")))
	return hex.EncodeToString(sum[:16])
}
