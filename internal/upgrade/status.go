// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Status returns status.upgrade of a ClusterAddon; nil once the upgrade is done and nothing of it
// is left to do.
func (u *Upgrade) Status(c Cluster, causes Causes, before *addonsv1.ClusterUpgrade, now time.Time) *addonsv1.ClusterUpgrade {
	if u == nil {
		return nil
	}
	if before != nil && before.Target != u.Target {
		before = nil
	}
	status := &addonsv1.ClusterUpgrade{
		From: u.From, Step: u.Step, Target: u.Target, ObservedClusterGeneration: c.Generation,
		Since: Since(now), Gates: u.Gates(causes, before, now),
	}
	if before != nil {
		status.Since = before.Since
	}
	isLeft := func(g addonsv1.UpgradeGate) bool {
		return g.State != addonsv1.GateOpen && g.State != addonsv1.GatePassed
	}
	if u.Done && !slices.ContainsFunc(status.Gates, isLeft) {
		return nil
	}
	return status
}

// Condition returns UpgradeAllowed of an upgrade.
func (u *Upgrade) Condition(status *addonsv1.ClusterUpgrade) metav1.Condition {
	c := metav1.Condition{Type: addonsv1.UpgradeAllowedCondition, Status: metav1.ConditionTrue, Reason: addonsv1.UpgradeAllowedReason}
	passed := false
	for _, gate := range status.Gates {
		passed = passed || gate.State == addonsv1.GatePassed
		if gate.State == addonsv1.GateOpen || c.Status == metav1.ConditionFalse {
			continue
		}
		c.Reason, c.Message = gate.Reason, fmt.Sprintf("%s, Kubernetes %s: %s", gate.Point, gate.Version, gate.Message)
		if !gate.State.IsOpen() {
			c.Status = metav1.ConditionFalse
		}
	}
	if passed || !u.Asked && c.Status == metav1.ConditionFalse {
		why := "The Cluster has no topology, so nothing asks whether to go on. "
		if u.Asked {
			why = "Cluster API didn't ask whether to go on. It does so by the hooks of Chandler's ExtensionConfig. "
		}
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, addonsv1.UpgradeNotAskedReason, why+c.Message
	}
	return c
}

// Deadline returns when the first gate that waits is given up; zero for never.
func Deadline(status *addonsv1.ClusterUpgrade) time.Time {
	var first time.Time
	if status == nil {
		return first
	}
	for _, gate := range status.Gates {
		if at := gate.Deadline.Time; !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}
