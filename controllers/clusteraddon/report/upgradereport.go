// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/result"
	"github.com/cluster-chandler/chandler/internal/series"
	"github.com/cluster-chandler/chandler/internal/upgrade"
)

// upgradeEvents returns an event of each changed gate of an upgrade, and of its end.
func upgradeEvents(before, after *addonsv1.ClusterUpgrade) []result.Event {
	if after == nil {
		if before == nil {
			return nil
		}
		return []result.Event{{Kind: corev1.EventTypeNormal, Reason: "UpgradeDone", Action: "Upgrade", Note: fmt.Sprintf("The upgrade to Kubernetes %s is done", before.Target)}}
	}
	var events []result.Event
	for _, gate := range after.Gates {
		was := upgrade.GateOf(before, gate.Point, gate.Version)
		if was == nil || was.State != gate.State || was.Reason != gate.Reason {
			events = append(events, gateEvent(gate))
		}
	}
	return events
}

func gateEvent(gate addonsv1.UpgradeGate) result.Event {
	e := result.Event{Kind: corev1.EventTypeNormal, Reason: gate.Reason, Action: "Upgrade"}
	e.Note = fmt.Sprintf("Kubernetes %s, %s: %s", gate.Version, gate.Point, gate.State)
	if gate.Message != "" {
		e.Note += ": " + gate.Message
	}
	switch gate.State {
	case addonsv1.GateClosed, addonsv1.GateExpired, addonsv1.GateSkipped, addonsv1.GatePassed:
		e.Kind = corev1.EventTypeWarning
	}
	return e
}

// deletionEvent returns the event of a Cluster that is deleted before its add-ons, nil if it isn't.
func deletionEvent(before, after *addonsv1.ClusterDeletion) *result.Event {
	if after == nil || after.State != addonsv1.GateExpired || before != nil && before.State == after.State {
		return nil
	}
	return &result.Event{Kind: corev1.EventTypeWarning, Reason: addonsv1.UpgradeHoldExpiredReason, Action: "Remove", Note: after.Message}
}

// countHolds counts the gates that aren't held any more, and the add-ons that hold others now.
func countHolds(before, after *addonsv1.ClusterUpgrade, causes upgrade.Causes, now time.Time) {
	was, is := heldGates(before), heldGates(after)
	for point, since := range was {
		if _, still := is[point]; !still {
			upgradeHeldSeconds.WithLabelValues(string(point)).Observe(now.Sub(since).Seconds())
		}
	}
	for point := range is {
		if _, already := was[point]; already {
			continue
		}
		for _, cause := range causes.Waiting {
			if cause.Point == point && cause.Addon != "" {
				upgradeHolds.WithLabelValues(string(point), holders.Label(cause.Addon)).Inc()
			}
		}
	}
}

// maxHolders is how many names of add-ons have series of their own. Users name add-ons.
const maxHolders = 256

var holders = series.Bounded(maxHolders)

// heldGates returns since when the upgrade is at points where it may not go on.
func heldGates(status *addonsv1.ClusterUpgrade) map[addonsv1.UpgradePoint]time.Time {
	held := map[addonsv1.UpgradePoint]time.Time{}
	if status != nil {
		for _, gate := range status.Gates {
			if !gate.State.IsOpen() {
				held[gate.Point] = gate.Since.Time
			}
		}
	}
	return held
}

// gateLabels are those of a gate in its series.
type gateLabels struct {
	point addonsv1.UpgradePoint
	state addonsv1.GateState
}

// gateSeries are the series in which a ClusterAddon's gates are counted.
type gateSeries struct{ counted sets.Set[gateLabels] }

// count brings the series of gates from what they were for this ClusterAddon to what they are.
func (g *gateSeries) count(status *addonsv1.ClusterUpgrade) {
	now := sets.New[gateLabels]()
	if status != nil {
		for _, gate := range status.Gates {
			now.Insert(gateLabels{gate.Point, gate.State})
		}
	}
	for gone := range g.counted.Difference(now) {
		upgradeGates.WithLabelValues(string(gone.point), string(gone.state)).Dec()
	}
	for is := range now.Difference(g.counted) {
		upgradeGates.WithLabelValues(string(is.point), string(is.state)).Inc()
	}
	g.counted = now
}
