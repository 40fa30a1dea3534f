// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/flowcontrol"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
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
	// unmetSince says since when conditions don't hold.
	unmetSince map[conditionsKey]time.Time
	// outdatedSince says since when assignments don't follow, by stack.
	outdatedSince map[string]time.Time
	// installs are those of add-ons that had no record, by release.
	installs *flowcontrol.Backoff
	// began times installations and upgrades.
	began beginnings
	// agreed are optional sources of values without which somebody lets an add-on go on, as "namespace/name" and
	// "kind/name/key". Losing one asks once more.
	agreed sets.Set[string]
	// leavingSince says since when add-ons wait for others that may take over their objects. Losing it has them wait
	// once more.
	leavingSince map[deliver.Release]time.Time
	// drifts are what is known of changes by others, repairs how many may be repaired.
	drifts  drifts
	repairs repairBudget
	// health is what was seen of installed add-ons' workloads.
	health healths
	// gates are those of the cluster's upgrade, as they are counted.
	gates gateSeries
	// identity is that of the cluster.
	identity identity
	// proofs are those of the records.
	proofs proofs
	// lastEvents is the status that events were last about, nil before the first.
	lastEvents *addonsv1.ClusterAddonStatus
}

func newMemory() *memory {
	return &memory{
		unmetSince: map[conditionsKey]time.Time{}, installs: newInstalls(), began: beginnings{},
		leavingSince: map[deliver.Release]time.Time{}, agreed: sets.New[string](),
		health: healths{},
		drifts: drifts{}, repairs: newRepairBudget(),
	}
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

// conditionsKey are conditions of an add-on of a cluster.
type conditionsKey struct {
	release deliver.Release
	field   string
}

// identity is which cluster a connection leads to.
type identity struct {
	conn *fleet.Connection
	uid  types.UID
}
