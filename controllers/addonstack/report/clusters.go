// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// ClustersReady makes the ClustersReady condition. Its length doesn't grow with
// the fleet: the first causes, as [standing.Causes.Describe] returns them, stand for all.
func ClustersReady(counts *addonsv1.ClusterCounts, why []string) metav1.Condition {
	const kind = addonsv1.ClustersReadyCondition
	c := Condition(kind, metav1.ConditionFalse, addonsv1.ClustersProgressingReason, fmt.Sprintf("%d of %d clusters are ready", counts.Ready, counts.Total))
	switch {
	case counts.Total == 0:
		return Condition(kind, metav1.ConditionTrue, addonsv1.NoClusterMatchesReason,
			"No Cluster of this namespace matches spec.clusterSelector, spec.classNames and spec.clusterKinds")
	case counts.Failed > 0:
		c.Reason, c.Message = addonsv1.ClustersFailedReason, fmt.Sprintf("%d of %d clusters failed", counts.Failed, counts.Total)
	case counts.Ready+ptr.Deref(counts.Unstarted, 0) == counts.Total:
		c.Status, c.Reason = metav1.ConditionTrue, addonsv1.ClustersReadyReason
	case counts.Waiting > 0:
		c.Message += fmt.Sprintf("; %d can't be worked on now", counts.Waiting)
	}
	if len(why) > 0 {
		c.Message += ". " + FirstOf(why)
	}
	return c
}
