// SPDX-License-Identifier: Apache-2.0

package report

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/member"
)

// Unseen writes that the deletion of a Cluster, or an upgrade, waits for a cluster of which nothing can be seen, and returns when
// to look again. While no condition says so, as after each restart, both stay as they are. removes says that add-ons are to go
// before the Cluster.
func (m *Memory) Unseen(ca *addonsv1.ClusterAddon, cluster *member.Member, removes bool, now time.Time) time.Duration {
	switch why := whyUnseen(ca); {
	case why != nil && removes:
		return deletionUnseen(ca, why.LastTransitionTime.Time, now)
	case why != nil:
		return m.upgradeUnseen(ca, cluster, now)
	case removes:
		tellDeletion(ca)
	}
	return 0
}

// whyUnseen returns the condition that says that nothing can be seen of the cluster, nil while none does.
func whyUnseen(ca *addonsv1.ClusterAddon) *metav1.Condition {
	if c := conditions.Get(ca, addonsv1.ClusterReachableCondition); c != nil && c.Status != metav1.ConditionTrue {
		return c
	}
	if c := conditions.Get(ca, addonsv1.AddonsReadyCondition); c != nil && c.Status == metav1.ConditionUnknown {
		return c
	}
	return nil
}
