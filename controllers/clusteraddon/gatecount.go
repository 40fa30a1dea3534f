// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// gateLabels are those of a gate in its series.
type gateLabels struct {
	point addonsv1.UpgradePoint
	state addonsv1.GateState
}

// countGates brings the series of gates from what they were for this ClusterAddon to what they are.
func (m *memory) countGates(status *addonsv1.ClusterUpgrade) {
	now := sets.New[gateLabels]()
	if status != nil {
		for _, gate := range status.Gates {
			now.Insert(gateLabels{gate.Point, gate.State})
		}
	}
	for gone := range m.gates.Difference(now) {
		upgradeGates.WithLabelValues(string(gone.point), string(gone.state)).Dec()
	}
	for is := range now.Difference(m.gates) {
		upgradeGates.WithLabelValues(string(is.point), string(is.state)).Inc()
	}
	m.gates = now
}
