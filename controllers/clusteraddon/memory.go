// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/flowcontrol"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// memory is what this process remembers of a ClusterAddon from one reconcile to the next.
// A ClusterAddon has one reconcile at a time. Losing the memory costs some looks more.
//
// Key: the ClusterAddon.
// Bound: until it is gone.
// Lost with it: some looks and pauses more.
type memory struct {
	// addons are those of add-ons.
	addons map[deliver.Release]*addonMemory
	// outdatedSince says since when assignments don't follow, by stack.
	outdatedSince map[string]time.Time
	// installs are those of add-ons that had no record, by release.
	installs *flowcontrol.Backoff
	// repairs bounds the repairs of changes by others.
	repairs *rate.Limiter
	// gates are those of the cluster's upgrade, as they are counted.
	gates gateSeries
	// identity is that of the cluster.
	identity identity
	// proofs are those of the records.
	proofs releases.Proofs
	// lastEvents is the status that events were last about, nil before the first.
	lastEvents *addonsv1.ClusterAddonStatus
}

func newMemory() *memory {
	return &memory{addons: map[deliver.Release]*addonMemory{}, installs: newInstalls(), repairs: rate.NewLimiter(repairRate, repairBurst)}
}

// of returns the memory of an add-on, an empty one at first.
func (m *memory) of(release deliver.Release) *addonMemory {
	if m.addons[release] == nil {
		m.addons[release] = newAddonMemory()
	}
	return m.addons[release]
}

// Pauses before an add-on is installed once more whose record doesn't stay. They double, and what
// is below retry.Install is none: the watch of records may be behind.
const freeInstalls = 3

func newInstalls() *flowcontrol.Backoff {
	return flowcontrol.NewBackOff(retry.Install.First>>(freeInstalls-1), retry.Install.Longest)
}

// installPause returns how long to wait before an add-on without a record is installed; 0 if it may be now.
func (m *memory) installPause(release deliver.Release, now time.Time) time.Duration {
	pause := m.installs.Get(release.String())
	if pause < retry.Install.First || !m.installs.IsInBackOffSinceUpdate(release.String(), now) {
		return 0
	}
	return pause
}

// identity is which cluster a connection leads to.
type identity struct {
	conn *fleet.Connection
	uid  types.UID
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
