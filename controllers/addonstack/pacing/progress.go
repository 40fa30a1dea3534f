// SPDX-License-Identifier: Apache-2.0

package pacing

import (
	"k8s.io/apimachinery/pkg/api/equality"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// IsProgress reports whether the statuses differ in nothing but how many clusters are updated or ready, and that is more of them than
// before. So it isn't progress if all of them are ready, a wave ends, or one fails.
func IsProgress(before, after *addonsv1.AddonStackStatus) bool {
	was, is := before.Clusters, after.Clusters
	if was == nil || is == nil || is.Ready < was.Ready || equality.Semantic.DeepEqual(before, after) {
		return false
	}
	return equality.Semantic.DeepEqual(besideProgress(before), besideProgress(after))
}

// besideProgress returns a copy without what grows while clusters become ready.
func besideProgress(s *addonsv1.AddonStackStatus) *addonsv1.AddonStackStatus {
	s = s.DeepCopy()
	s.Clusters.Ready, s.Clusters.Updated, s.Clusters.Unstarted = 0, nil, nil
	if s.Rollout != nil {
		for i := range s.Rollout.Waves {
			wave := &s.Rollout.Waves[i]
			*wave = addonsv1.RolloutWaveStatus{Name: wave.Name, Total: wave.Total, Failed: wave.Failed, Away: wave.Away}
		}
	}
	for i := range s.Conditions {
		switch c := &s.Conditions[i]; c.Type {
		case addonsv1.ReadyCondition, addonsv1.ClustersReadyCondition, addonsv1.RolledOutCondition:
			c.Message = ""
		}
	}
	return s
}
