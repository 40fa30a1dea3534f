// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
)

// memory is what this process remembers of a ClusterAddon from one reconcile to the next.
// A ClusterAddon has one reconcile at a time. Losing the memory costs some looks more.
type memory struct {
	// unmetSince says since when conditions don't hold.
	unmetSince map[conditionsKey]time.Time
	// outdatedSince says since when assignments don't follow, by stack.
	outdatedSince map[string]time.Time
	// installs are of add-ons whose records don't stay.
	installs map[deliver.Release]installs
	// began says since when add-ons are worked on that aren't Ready.
	began map[deliver.Release]time.Time
	// drifts are what is known of changes by others, repairs how many may be repaired.
	drifts  map[deliver.Release]*driftMemory
	repairs *rate.Limiter
	// gates are those of the cluster's upgrade, as they are counted.
	gates sets.Set[gateLabels]
	// lastEvents is the status that events were last about, nil before the first.
	lastEvents *addonsv1.ClusterAddonStatus
}

func newMemory() *memory {
	return &memory{unmetSince: map[conditionsKey]time.Time{}, installs: map[deliver.Release]installs{}, began: map[deliver.Release]time.Time{}, drifts: map[deliver.Release]*driftMemory{}}
}

// memoryOf returns the memory of a ClusterAddon, an empty one at first.
func (r *Reconciler) memoryOf(key client.ObjectKey) *memory {
	known, _ := r.memories.LoadOrStore(key, newMemory())
	return known.(*memory)
}

// forget drops all that is known of a ClusterAddon that is gone.
func (r *Reconciler) forget(key client.ObjectKey) {
	r.memoryOf(key).countGates(nil)
	r.memories.Delete(key)
	r.users.forget(key)
	r.lanes.forget(key)
	r.Deliverer.Forget(key.String())
	r.statuses.Forget(key)
}

// Pauses before an add-on is installed once more whose record doesn't stay. The watch of
// records may be behind, so the first few installations are free.
const (
	freeInstalls      = 3
	firstInstallPause = 10 * time.Second
	lastInstallPause  = 5 * time.Minute
	installsForgotten = 2 * lastInstallPause
)

// installs count how often an add-on was installed that had no record.
type installs struct {
	number int
	last   time.Time
}

// pause returns how long to wait before the add-on is installed again; 0 if it may be now.
func (i installs) pause(now time.Time) time.Duration {
	if i.number < freeInstalls {
		return 0
	}
	pause := min(firstInstallPause<<min(i.number-freeInstalls, 10), lastInstallPause)
	return max(0, i.last.Add(pause).Sub(now))
}

// oneMore returns the count after an installation.
func (i installs) oneMore(now time.Time) installs {
	if now.Sub(i.last) > installsForgotten {
		i.number = 0
	}
	return installs{number: i.number + 1, last: now}
}
