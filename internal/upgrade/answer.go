// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// Question is what Cluster API asks at a point of an upgrade.
type Question struct {
	Point addonsv1.UpgradePoint
	// Version that the control plane is to run next, or that the control plane or the workers run
	// by now; "" for whatever is next.
	Version string
	// Target is spec.topology.version of the Cluster, and Generation its metadata.generation.
	Target     string
	Generation int64
	// SkipGates is the value of the annotation; "" if there is none.
	SkipGates string
}

// LostInstance is that of the provider instance which manages a Cluster, and gives no sign of life.
type LostInstance struct {
	Instance string // namespace/name
	Since    time.Time
}

// Answer says whether Cluster API is to wait.
type Answer struct {
	// RetryAfter is when to ask again; 0 to go on.
	RetryAfter time.Duration
	// Message says what the upgrade waits for. It is the same as long as that is.
	Message string
}

// AnswerOf answers from the status of a Cluster's ClusterAddon alone. A gate that isn't told of, as
// the instance hasn't looked at the Cluster since it was changed, is waited for.
func AnswerOf(q Question, ca *addonsv1.ClusterAddon, lost *LostInstance, now time.Time) Answer {
	if !ptr.Deref(ca.Status.GatesUpgrades, false) || q.SkipGates != "" && q.SkipGates == q.Target {
		return Answer{}
	}
	status := ca.Status.Upgrade
	seen := status != nil && status.Target == q.Target && status.ObservedClusterGeneration >= q.Generation
	if seen {
		gate := GateOf(status, q.Point, q.Version)
		switch {
		case gate == nil:
		case mayGoOn(gate.State, gate.Deadline, now):
			return Answer{}
		default:
			return Answer{retry.Hook, gate.Message}
		}
	}
	since, message := now, fmt.Sprintf("ClusterAddon %s doesn't say yet if its add-ons are ready for %s", ca.Name, q.Target)
	switch {
	case lost != nil:
		since, message = lost.Since, fmt.Sprintf("provider instance %s is silent, and hasn't said if the add-ons are ready for %s", lost.Instance, q.Target)
	case isOver(status, q, seen):
		return Answer{}
	case seen:
		since = status.Since.Time
	}
	if !now.Before(since.Add(HoldOf(nil).Time)) {
		return Answer{}
	}
	return Answer{retry.Hook, message}
}

// DeletionAnswerOf answers whether a Cluster may go that is to be deleted.
func DeletionAnswerOf(ca *addonsv1.ClusterAddon, lost *LostInstance, now time.Time) Answer {
	d := ca.Status.Deletion
	switch {
	case !ptr.Deref(ca.Status.GatesDeletion, false):
		return Answer{}
	case d != nil && mayGoOn(d.State, d.Deadline, now):
		return Answer{}
	case d != nil:
		return Answer{retry.Hook, d.Message}
	case lost != nil && !now.Before(lost.Since.Add(HoldOf(nil).Time)):
		return Answer{}
	case lost != nil:
		return Answer{retry.Hook, fmt.Sprintf("provider instance %s is silent, and hasn't removed add-ons", lost.Instance)}
	}
	return Answer{retry.Hook, fmt.Sprintf("ClusterAddon %s doesn't say yet if add-ons are to be removed", ca.Name)}
}

// GateOf returns the gate at a point, of a minor version or of any for "", nil if there is none.
func GateOf(status *addonsv1.ClusterUpgrade, point addonsv1.UpgradePoint, version string) *addonsv1.UpgradeGate {
	if status == nil {
		return nil
	}
	for i := range status.Gates {
		if gate := &status.Gates[i]; gate.Point == point && (version == "" || SameMinor(gate.Version, version)) {
			return gate
		}
	}
	return nil
}

// isOver reports whether there is nothing to wait for after a part of an upgrade that has no gate.
// Then all of it was done, or it was before the upgrade was first seen.
func isOver(status *addonsv1.ClusterUpgrade, q Question, seen bool) bool {
	if q.Point == addonsv1.UpgradeBeforeControlPlane {
		return false
	}
	return status == nil || seen && q.Point == addonsv1.UpgradeAfterControlPlane && SameMinor(status.From, q.Version)
}
