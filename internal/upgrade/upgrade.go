// SPDX-License-Identifier: Apache-2.0

// Package upgrade decides what an upgrade of a cluster's Kubernetes means for its add-ons. It says
// which changes wait for a point of the upgrade, and what the upgrade waits for at each point.
//
// It decides from what is seen of the Cluster, never from a call of a runtime hook: such calls
// may be lost, repeated, or never come.
package upgrade

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/compatibility"
)

// Upgrade is how far a cluster is on its way from one version of Kubernetes to another.
type Upgrade struct {
	// From, Step and Target are those of [addonsv1.ClusterUpgrade].
	From, Step, Target string
	// Reached is the version that all of the control plane runs; "" while it changes.
	Reached string
	// Steps are the versions that the control plane is still to run, Step being the first.
	// Empty once it runs Target.
	Steps []string
	// Done says that the control plane and all workers run Target.
	Done bool
	// Asked says that Cluster API asks at each point whether to go on, if its gates are on.
	Asked bool
}

// Observe returns the upgrade that is seen, nil if none is. The previous status tells where it began;
// without that it begins now. An upgrade that is done is seen as long as the status has it.
func Observe(c Cluster, before *addonsv1.ClusterUpgrade) *Upgrade {
	if len(c.ControlPlane) == 0 {
		return nil
	}
	u := &Upgrade{Target: c.Topology, Reached: only(c.ControlPlane), Asked: c.Topology != ""}
	if !u.Asked {
		u.Target = slices.MaxFunc(slices.Concat(c.ControlPlane, c.Workers), compare)
	}
	if compare(u.Target, slices.MinFunc(c.ControlPlane, compare)) < 0 {
		return nil // Cluster API doesn't go back
	}
	if c.API != "" && !hasMinor(c.API, u.Reached) {
		u.Reached = "" // who asks the API server is still answered by an older one
	}
	same := before != nil && before.Target == u.Target
	u.Done = u.Reached == u.Target && !slices.ContainsFunc(c.Workers, func(v string) bool { return v != u.Target })
	if u.Done && !same {
		return nil
	}
	u.From = slices.MinFunc(c.ControlPlane, compare)
	if same {
		u.From = before.From
	}
	u.Steps = u.stepsAhead(c, before)
	u.Step = u.Target
	if len(u.Steps) > 0 {
		u.Step = u.Steps[0]
	}
	return u
}

// stepsAhead returns the versions that the control plane is still to run. Cluster API takes a
// version off its plan once it asks for it; the control plane runs it only a while later.
func (u *Upgrade) stepsAhead(c Cluster, before *addonsv1.ClusterUpgrade) []string {
	if u.Reached == u.Target {
		return nil
	}
	plan := c.Plan
	if !u.Asked || len(plan) == 0 || plan[len(plan)-1] != u.Target {
		plan = compatibility.Minors(u.runs(c), u.Target)
	}
	underWay := before != nil && before.Target == u.Target && before.Step != u.Reached &&
		!slices.ContainsFunc(plan, func(v string) bool { return SameMinor(v, before.Step) }) && compare(u.runs(c), before.Step) <= 0
	if underWay {
		plan = append([]string{before.Step}, plan...)
	}
	return plan
}

// runs returns the oldest version that the control plane runs.
func (u *Upgrade) runs(c Cluster) string {
	if u.Reached != "" {
		return u.Reached
	}
	return slices.MinFunc(c.ControlPlane, compare)
}

// AtControlPlane reports whether the control plane is to be upgraded next.
func (u *Upgrade) AtControlPlane() bool { return u != nil && u.Reached != "" && len(u.Steps) > 0 }

// HasPresent reports whether an add-on that is there at some times is there now.
func (u *Upgrade) HasPresent(present addonsv1.Present) bool {
	switch present {
	case addonsv1.PresentBeforeUpgrade:
		return u.AtControlPlane() && u.Reached == u.From
	case addonsv1.PresentDuringUpgrade:
		return u != nil && !u.Done
	}
	return true
}

// IsDue reports whether changes of add-ons of a point may be delivered. Without an upgrade all may.
func (u *Upgrade) IsDue(point addonsv1.UpgradePoint) bool {
	if u == nil {
		return true
	}
	switch point {
	case addonsv1.UpgradeAfterControlPlane:
		return u.Reached != "" && (u.Reached == u.Target || u.Reached != u.From)
	case addonsv1.UpgradeAfterWorkers:
		return u.Done
	}
	return true
}

// Status returns status.upgrade of a ClusterAddon, nil once nothing is left to do.
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
