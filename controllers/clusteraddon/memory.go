// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/controllers/clusteraddon/memory"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/report"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/workload"
)

// remembered is what this process remembers of a ClusterAddon from one reconcile to the next.
// A ClusterAddon has one reconcile at a time.
//
// Key: the ClusterAddon.
// Bound: until it is gone.
// Lost with it: some looks and pauses more.
type remembered struct {
	addons *memory.Addons
	// outdatedSince says since when assignments don't follow, by stack.
	outdatedSince map[string]time.Time
	identity      workload.Identity
	// proofs are those of the records.
	proofs   releases.Proofs
	reported report.Memory
}

// memoryOf returns the memory of a ClusterAddon, an empty one at first.
func (r *Reconciler) memoryOf(key client.ObjectKey) *remembered {
	known, _ := r.memories.LoadOrStore(key, &remembered{addons: memory.New()})
	return known.(*remembered)
}

// forget drops all that is known of a ClusterAddon that is gone.
func (r *Reconciler) forget(key client.ObjectKey) {
	r.memoryOf(key).reported.Forget()
	r.memories.Delete(key)
	r.users.Set(key, nil)
	r.lanes.Forget(key)
	for _, next := range r.inputTurns.Forget(key) {
		r.Queue.Add(next)
	}
	r.Deliverer.Forget(key.String())
	r.statuses.Forget(key)
}
