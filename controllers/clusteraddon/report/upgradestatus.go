// SPDX-License-Identifier: Apache-2.0

package report

import (
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/result"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/upgrade"
)

// setUpgrade writes status.upgrade and its condition, and returns when to look again.
func (m *Memory) setUpgrade(ca *addonsv1.ClusterAddon, u *upgrade.Upgrade, versions upgrade.Cluster, causes upgrade.Causes, now time.Time) time.Duration {
	before := ca.Status.Upgrade
	ca.Status.Upgrade = u.Status(versions, causes, before, now)
	countHolds(before, ca.Status.Upgrade, causes, now)
	m.gates.count(ca.Status.Upgrade)
	if ca.Status.Upgrade == nil {
		conditions.Delete(ca, addonsv1.UpgradeAllowedCondition)
		return 0
	}
	c := u.Condition(ca.Status.Upgrade)
	c.Message = result.Shorten(c.Message)
	conditions.Set(ca, c)
	return result.Until(upgrade.Deadline(ca.Status.Upgrade), now)
}

// upgradeUnseen writes that an upgrade waits for a cluster which doesn't answer.
func (m *Memory) upgradeUnseen(ca *addonsv1.ClusterAddon, cluster *member.Member, now time.Time) time.Duration {
	if !ptr.Deref(ca.Status.GatesUpgrades, false) || cluster.Cluster == nil {
		return 0
	}
	versions := upgrade.ClusterOf(cluster.Cluster, "")
	u := upgrade.Observe(versions, ca.Status.Upgrade)
	if u == nil {
		return 0 // what was seen before stays
	}
	return m.setUpgrade(ca, u, versions, upgrade.Unseen(ca.Status.Upgrade, versions.SkipGates == u.Target), now)
}
