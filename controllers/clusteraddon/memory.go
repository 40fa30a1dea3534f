// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"time"

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
	// lastEvents is the status that events were last about, nil before the first.
	lastEvents *addonsv1.ClusterAddonStatus
}

func newMemory() *memory {
	return &memory{unmetSince: map[conditionsKey]time.Time{}, installs: map[deliver.Release]installs{}}
}

// memoryOf returns the memory of a ClusterAddon, an empty one at first.
func (r *Reconciler) memoryOf(key client.ObjectKey) *memory {
	known, _ := r.memories.LoadOrStore(key, newMemory())
	return known.(*memory)
}

// forget drops all that is known of a ClusterAddon that is gone.
func (r *Reconciler) forget(key client.ObjectKey) {
	r.memories.Delete(key)
	r.users.forget(key)
	r.lanes.forget(key)
	r.Deliverer.Forget(key.String())
	r.statuses.Forget(key)
}
