// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// upgradeEvents returns what there is to tell of an upgrade of Kubernetes: each change of a gate,
// and the end.
func upgradeEvents(before, after *addonsv1.ClusterUpgrade) []event {
	if after == nil {
		if before == nil {
			return nil
		}
		return []event{{kind: corev1.EventTypeNormal, reason: "UpgradeDone", action: "Upgrade", note: fmt.Sprintf("The upgrade to Kubernetes %s is done", before.Target)}}
	}
	var events []event
	for _, gate := range after.Gates {
		if was := formerGate(before, gate); was.State != gate.State || was.Reason != gate.Reason {
			events = append(events, gateEvent(gate))
		}
	}
	return events
}

// formerGate returns the gate as it was; an empty one if it wasn't there.
func formerGate(before *addonsv1.ClusterUpgrade, gate addonsv1.UpgradeGate) addonsv1.UpgradeGate {
	if before != nil {
		for _, was := range before.Gates {
			if was.Point == gate.Point && was.Version == gate.Version {
				return was
			}
		}
	}
	return addonsv1.UpgradeGate{}
}

func gateEvent(gate addonsv1.UpgradeGate) event {
	e := event{kind: corev1.EventTypeNormal, reason: gate.Reason, action: "Upgrade"}
	e.note = fmt.Sprintf("Kubernetes %s, %s: %s", gate.Version, gate.Point, gate.State)
	if gate.Message != "" {
		e.note += ": " + gate.Message
	}
	switch gate.State {
	case addonsv1.GateClosed, addonsv1.GateExpired, addonsv1.GateSkipped, addonsv1.GatePassed:
		e.kind = corev1.EventTypeWarning
	}
	return e
}

// deletionEvent returns the event of a Cluster that goes before its add-ons were removed, nil if
// there is nothing to tell.
func deletionEvent(before, after *addonsv1.ClusterDeletion) *event {
	if after == nil || after.State != addonsv1.GateExpired || before != nil && before.State == after.State {
		return nil
	}
	return &event{kind: corev1.EventTypeWarning, reason: addonsv1.UpgradeHoldExpiredReason, action: "Remove", note: after.Message}
}
