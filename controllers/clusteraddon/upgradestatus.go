// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/upgrade"
)

// reportUpgrade writes what the upgrade waits for, and returns when to look again.
func (q statusReport) reportUpgrade(statuses []addonsv1.AddonStatus) time.Duration {
	q.ca.Status.GatesUpgrades = nil
	if q.gates {
		q.ca.Status.GatesUpgrades = ptr.To(true)
	}
	return q.setUpgrade(q.ca, q.upgrade, q.versions, q.gate().causes(statuses))
}

// setUpgrade writes status.upgrade and its condition, and returns when to look again.
func (r *Reconciler) setUpgrade(ca *addonsv1.ClusterAddon, u *upgrade.Upgrade, versions upgrade.Cluster, causes upgrade.Causes) time.Duration {
	before, now := ca.Status.Upgrade, r.Clock.Now()
	ca.Status.Upgrade = u.Status(versions, causes, before, now)
	countHolds(before, ca.Status.Upgrade, causes, now)
	r.memoryOf(client.ObjectKeyFromObject(ca)).gates.count(ca.Status.Upgrade)
	if ca.Status.Upgrade == nil {
		conditions.Delete(ca, addonsv1.UpgradeAllowedCondition)
		return 0
	}
	c := u.Condition(ca.Status.Upgrade)
	c.Message = shorten(c.Message)
	conditions.Set(ca, c)
	return until(upgrade.Deadline(ca.Status.Upgrade), now)
}

// upgradeUnseen writes that an upgrade waits for a cluster which doesn't answer.
func (r *Reconciler) upgradeUnseen(ca *addonsv1.ClusterAddon, cluster *member.Member) time.Duration {
	if !ptr.Deref(ca.Status.GatesUpgrades, false) || cluster.Cluster == nil {
		return 0
	}
	versions := upgrade.ClusterOf(cluster.Cluster, "")
	u := upgrade.Observe(versions, ca.Status.Upgrade)
	if u == nil {
		return 0 // what was seen before stays
	}
	return r.setUpgrade(ca, u, versions, upgrade.Unseen(ca.Status.Upgrade, versions.SkipGates == u.Target))
}
