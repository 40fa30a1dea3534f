// SPDX-License-Identifier: Apache-2.0

// Package upgradegate holds add-ons back for an upgrade of Kubernetes, and the upgrade for add-ons. It only computes.
package upgradegate

import (
	"fmt"
	"maps"
	"slices"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/gather"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/rendering"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/result"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/compatibility"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/upgrade"
)

// HeldBack returns why a change of an add-on isn't delivered yet. A change that began before
// continues, and so does the renewal of certificates. With nothing installed at all, the cluster is
// new.
func HeldBack(o *gather.Observed, a *wanted.Addon, record deliver.Summary) (reason, message string) {
	if o.Upgrade.IsDue(a.Point()) || len(o.Installed) == 0 {
		return "", ""
	}
	_, installed := o.Installed[a.Release()]
	switch {
	case installed && record.Spec == a.SpecDigest() && (record.Status != deliver.StatusDeployed || rendering.IsRenewalDue(record, o.Now)):
		return "", ""
	case !installed && !cameWithUpgrade(o, a):
		return "", ""
	case a.Point() == addonsv1.UpgradeAfterWorkers:
		return reasons.WaitingForWorkers, fmt.Sprintf("Its change is delivered once all workers run Kubernetes %s", o.Upgrade.Target)
	}
	return reasons.WaitingForControlPlane, fmt.Sprintf("Its change is delivered once the control plane runs Kubernetes %s", o.Upgrade.Step)
}

// cameWithUpgrade reports whether a missing add-on was first wanted when the upgrade was in sight.
func cameWithUpgrade(o *gather.Observed, a *wanted.Addon) bool {
	at := result.IndexOf(o.ClusterAddon.Status.Addons, a.Status())
	return at < 0 || wanted.IsHeldBack(o.ClusterAddon.Status.Addons[at].Reason)
}

// HoldsRemoval reports whether an unwanted add-on stays until the upgrade is done.
func HoldsRemoval(o *gather.Observed, record deliver.Summary) bool {
	return o.Upgrade != nil && !o.Upgrade.Done && !releases.IsRemoving(record) && !o.Absent[releases.Qualified(record)]
}

// Causes returns what the upgrade waits for.
func Causes(o *gather.Observed, statuses []addonsv1.AddonStatus) upgrade.Causes {
	if o.Upgrade == nil {
		return upgrade.Causes{}
	}
	causes := upgrade.Causes{Closed: closed(o, statuses), Skip: o.Versions.SkipGates == o.Upgrade.Target}
	for i := range o.Wanted {
		a := &o.Wanted[i]
		status := a.Status()
		if at := result.IndexOf(statuses, status); at >= 0 {
			status = statuses[at]
		}
		cause := upgrade.Cause{Addon: a.Name, Point: a.AwaitedAt(), Reason: addonsv1.UpgradeAddonsNotReadyReason, Hold: upgrade.HoldOf(a.Spec.Lifecycle)}
		switch {
		case a.Paused: // as the upgrade of a paused cluster, it goes on
			continue
		case isUnread(o, a, &status):
			cause.Point = addonsv1.UpgradeBeforeControlPlane
			cause.Message = fmt.Sprintf("it isn't known yet for which versions of Kubernetes the chart of add-on %s of AddonStack %s is: see status.addons of ClusterAddon %s",
				a.Name, a.Stack, o.ClusterAddon.Name)
		case a.AwaitedAt() == addonsv1.UpgradeIndependent || wanted.IsInstalled(status.Phase):
			continue
		default: // without the add-on's own message, which may change all the time
			cause.Message = fmt.Sprintf("add-on %s of AddonStack %s isn't ready (%s): see status.addons of ClusterAddon %s",
				a.Name, a.Stack, result.DescribePhase(&status), o.ClusterAddon.Name)
		}
		causes.Waiting = append(causes.Waiting, cause)
	}
	for _, name := range o.Outdated {
		causes.Waiting = append(causes.Waiting, upgrade.Cause{
			Point: addonsv1.UpgradeBeforeControlPlane, Reason: addonsv1.UpgradeStackUndecidedReason, Hold: upgrade.HoldOf(nil),
			Message: fmt.Sprintf("AddonStack %s or the Cluster was changed a moment ago, and spec.stacks of ClusterAddon %s is to follow", name, o.ClusterAddon.Name),
		})
	}
	for _, name := range slices.Sorted(maps.Keys(o.Unresolved)) {
		if s := o.Unresolved[name]; s.State.IsAwaited() {
			causes.Waiting = append(causes.Waiting, upgrade.Cause{
				Point: addonsv1.UpgradeBeforeControlPlane, Reason: addonsv1.UpgradeStackUndecidedReason, Hold: upgrade.HoldOf(nil), Message: s.Why,
			})
		}
	}
	return causes
}

// isUnread reports whether nobody knows yet what the chart of an add-on says of versions of Kubernetes: it is to be
// installed or changed, and wasn't rendered. It matters if the add-on's stack has a say in upgrades.
func isUnread(o *gather.Observed, a *wanted.Addon, status *addonsv1.AddonStatus) bool {
	record := o.Installed[a.Release()]
	return o.Upgrade.AtControlPlane() && a.AwaitedAt() != addonsv1.UpgradeBeforeControlPlane && record.Spec != a.SpecDigest() && a.Incompatible == "" && !a.Outdated && !wanted.IsHeldBack(status.Reason) &&
		status.Reason != reasons.ReleaseTaken && stackHasSay(o, a.Stack)
}

// closed says which add-on isn't for a version on the way. The chart of an add-on whose change is held
// back isn't the chart that it will have. The add-ons of stacks that say nothing about upgrades don't count.
func closed(o *gather.Observed, statuses []addonsv1.AddonStatus) upgrade.Closed {
	if !o.Upgrade.AtControlPlane() {
		return upgrade.Closed{}
	}
	wayOut := fmt.Sprintf("Change the add-on, or set the annotation %s: %s on the Cluster", addonsv1.SkipGatesAnnotation, o.Upgrade.Target)
	var ranges []addonsv1.KubernetesRange
	for i := range o.Wanted {
		a := &o.Wanted[i]
		if a.Unfit != "" {
			return upgrade.Closed{Reason: addonsv1.UpgradeNoCompatibleVersionReason, Message: a.Unfit}
		}
		ranges = append(ranges, a.Ranges...)
		at := result.IndexOf(statuses, a.Status())
		if at >= 0 && wanted.IsHeldBack(statuses[at].Reason) || !stackHasSay(o, a.Stack) {
			continue
		}
		ranges = append(ranges, installedRanges(o, a)...)
		if kind, instead := compatibility.Removed(o.Installed[a.Release()].Kinds, o.Upgrade.Target); kind != "" {
			message := fmt.Sprintf("Kubernetes %s doesn't serve %s any more, which add-on %s of AddonStack %s has. ", o.Upgrade.Target, kind, a.Name, a.Stack)
			if instead != "" {
				message += fmt.Sprintf("In its place is %s. ", instead)
			}
			return upgrade.Closed{Reason: addonsv1.UpgradeAPIRemovedReason, Message: message + wayOut}
		}
	}
	version, by := compatibility.Upgrade(ranges, o.Upgrade.Reached, o.Upgrade.Target)
	if by == nil {
		return upgrade.Closed{}
	}
	return upgrade.Closed{Reason: addonsv1.UpgradeNoCompatibleVersionReason, Message: fmt.Sprintf(
		"Kubernetes %s isn't allowed by %s. %s", version, compatibility.Describe(*by), wayOut)}
}

// stackHasSay reports whether an add-on of a stack says anything about upgrades of Kubernetes.
func stackHasSay(o *gather.Observed, name string) bool {
	return slices.ContainsFunc(o.Wanted, func(a wanted.Addon) bool { return a.Stack == name && a.HasSay() })
}
