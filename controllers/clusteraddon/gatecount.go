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
