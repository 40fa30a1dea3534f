// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"fmt"
	"maps"
	"slices"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/rendering"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/compatibility"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/upgrade"
)

// upgradeGate holds add-ons back for an upgrade of Kubernetes, and the upgrade for add-ons.
type upgradeGate struct {
	ca         *addonsv1.ClusterAddon // as it was last written
	wanted     []wanted.Addon
	installed  map[deliver.Release]deliver.Summary
	unresolved map[string]unresolvedStack
	// outdated are the stacks whose assignment is to follow.
	outdated []string
	// upgrade is nil without one.
	upgrade  *upgrade.Upgrade
	versions upgrade.Cluster
	absent   map[string]bool
	now      time.Time
}

// gate returns what an upgrade holds back, and what holds it.
func (q *clusterRun) gate() upgradeGate {
	return upgradeGate{
		ca: q.stored, wanted: q.wanted, installed: q.installed, unresolved: q.unresolved, outdated: q.outdated,
		upgrade: q.upgrade, versions: q.versions, absent: q.absent, now: q.now,
	}
}

// heldBack returns why a change of an add-on isn't delivered yet. A change that began before
// continues, and so does the renewal of certificates. With nothing installed at all, the cluster is
// new.
func (q upgradeGate) heldBack(a *wanted.Addon, record deliver.Summary) (reason, message string) {
	if q.upgrade.IsDue(a.Point()) || len(q.installed) == 0 {
		return "", ""
	}
	_, installed := q.installed[a.Release()]
	switch {
	case installed && record.Spec == a.SpecDigest() && (record.Status != deliver.StatusDeployed || rendering.IsRenewalDue(record, q.now)):
		return "", ""
	case !installed && !q.cameWithUpgrade(a):
		return "", ""
	case a.Point() == addonsv1.UpgradeAfterWorkers:
		return reasons.WaitingForWorkers, fmt.Sprintf("Its change is delivered once all workers run Kubernetes %s", q.upgrade.Target)
	}
	return reasons.WaitingForControlPlane, fmt.Sprintf("Its change is delivered once the control plane runs Kubernetes %s", q.upgrade.Step)
}

// cameWithUpgrade reports whether a missing add-on was first wanted when the upgrade was in sight.
func (q upgradeGate) cameWithUpgrade(a *wanted.Addon) bool {
	at := indexOf(q.ca.Status.Addons, a.Status())
	return at < 0 || wanted.IsHeldBack(q.ca.Status.Addons[at].Reason)
}

// holdsRemoval reports whether an unwanted add-on stays until the upgrade is done.
func (q upgradeGate) holdsRemoval(record deliver.Summary) bool {
	return q.upgrade != nil && !q.upgrade.Done && !releases.IsRemoving(record) && !q.absent[releases.Qualified(record)]
}

// causes returns what the upgrade waits for.
func (q upgradeGate) causes(statuses []addonsv1.AddonStatus) upgrade.Causes {
	if q.upgrade == nil {
		return upgrade.Causes{}
	}
	causes := upgrade.Causes{Closed: q.closed(statuses), Skip: q.versions.SkipGates == q.upgrade.Target}
	for i := range q.wanted {
		a := &q.wanted[i]
		status := a.Status()
		if at := indexOf(statuses, status); at >= 0 {
			status = statuses[at]
		}
		cause := upgrade.Cause{Addon: a.Name, Point: a.AwaitedAt(), Reason: addonsv1.UpgradeAddonsNotReadyReason, Hold: upgrade.HoldOf(a.Spec.Lifecycle)}
		switch {
		case a.Paused: // as the upgrade of a paused cluster, it goes on
			continue
		case q.isUnread(a, &status):
			cause.Point = addonsv1.UpgradeBeforeControlPlane
			cause.Message = fmt.Sprintf("it isn't known yet for which versions of Kubernetes the chart of add-on %s of AddonStack %s is: see status.addons of ClusterAddon %s",
				a.Name, a.Stack, q.ca.Name)
		case a.AwaitedAt() == addonsv1.UpgradeIndependent || wanted.IsInstalled(status.Phase):
			continue
		default: // without the add-on's own message, which may change all the time
			cause.Message = fmt.Sprintf("add-on %s of AddonStack %s isn't ready (%s): see status.addons of ClusterAddon %s",
				a.Name, a.Stack, describePhase(&status), q.ca.Name)
		}
		causes.Waiting = append(causes.Waiting, cause)
	}
	for _, name := range q.outdated {
		causes.Waiting = append(causes.Waiting, upgrade.Cause{
			Point: addonsv1.UpgradeBeforeControlPlane, Reason: addonsv1.UpgradeStackUndecidedReason, Hold: upgrade.HoldOf(nil),
			Message: fmt.Sprintf("AddonStack %s or the Cluster was changed a moment ago, and spec.stacks of ClusterAddon %s is to follow", name, q.ca.Name),
		})
	}
	for _, name := range slices.Sorted(maps.Keys(q.unresolved)) {
		if s := q.unresolved[name]; s.state.IsAwaited() {
			causes.Waiting = append(causes.Waiting, upgrade.Cause{
				Point: addonsv1.UpgradeBeforeControlPlane, Reason: addonsv1.UpgradeStackUndecidedReason, Hold: upgrade.HoldOf(nil), Message: s.why,
			})
		}
	}
	return causes
}

// isUnread reports whether nobody knows yet what the chart of an add-on says of versions of Kubernetes: it is to be
// installed or changed, and wasn't rendered. It matters if the add-on's stack has a say in upgrades.
func (q upgradeGate) isUnread(a *wanted.Addon, status *addonsv1.AddonStatus) bool {
	record := q.installed[a.Release()]
	return q.upgrade.AtControlPlane() && a.AwaitedAt() != addonsv1.UpgradeBeforeControlPlane && record.Spec != a.SpecDigest() && a.Incompatible == "" && !a.Outdated && !wanted.IsHeldBack(status.Reason) &&
		status.Reason != reasons.ReleaseTaken && q.stackHasSay(a.Stack)
}

// closed says which add-on isn't for a version on the way. The chart of an add-on whose change is held
// back isn't the chart that it will have. The add-ons of stacks that say nothing about upgrades don't count.
func (q upgradeGate) closed(statuses []addonsv1.AddonStatus) upgrade.Closed {
	if !q.upgrade.AtControlPlane() {
		return upgrade.Closed{}
	}
	wayOut := fmt.Sprintf("Change the add-on, or set the annotation %s: %s on the Cluster", addonsv1.SkipGatesAnnotation, q.upgrade.Target)
	var ranges []addonsv1.KubernetesRange
	for i := range q.wanted {
		a := &q.wanted[i]
		if a.Unfit != "" {
			return upgrade.Closed{Reason: addonsv1.UpgradeNoCompatibleVersionReason, Message: a.Unfit}
		}
		ranges = append(ranges, a.Ranges...)
		at := indexOf(statuses, a.Status())
		if at >= 0 && wanted.IsHeldBack(statuses[at].Reason) || !q.stackHasSay(a.Stack) {
			continue
		}
		ranges = append(ranges, q.installedRanges(a)...)
		if kind, instead := compatibility.Removed(q.installed[a.Release()].Kinds, q.upgrade.Target); kind != "" {
			message := fmt.Sprintf("Kubernetes %s doesn't serve %s any more, which add-on %s of AddonStack %s has. ", q.upgrade.Target, kind, a.Name, a.Stack)
			if instead != "" {
				message += fmt.Sprintf("In its place is %s. ", instead)
			}
			return upgrade.Closed{Reason: addonsv1.UpgradeAPIRemovedReason, Message: message + wayOut}
		}
	}
	version, by := compatibility.Upgrade(ranges, q.upgrade.Reached, q.upgrade.Target)
	if by == nil {
		return upgrade.Closed{}
	}
	return upgrade.Closed{Reason: addonsv1.UpgradeNoCompatibleVersionReason, Message: fmt.Sprintf(
		"Kubernetes %s isn't allowed by %s. %s", version, compatibility.Describe(*by), wayOut)}
}

// stackHasSay reports whether an add-on of a stack says anything about upgrades of Kubernetes.
func (q upgradeGate) stackHasSay(name string) bool {
	return slices.ContainsFunc(q.wanted, func(a wanted.Addon) bool { return a.Stack == name && a.HasSay() })
}
