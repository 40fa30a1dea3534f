// SPDX-License-Identifier: Apache-2.0

package management

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Turns are the clusters that may be brought to a revision of an AddonStack now, or back from it if it was rejected. The AddonStack
// controller gives them, and the assignment controller takes them.
//
// Key: the AddonStack.
// Bound: a turn for each of its clusters, until it is taken, or the stack is gone.
// Lost with it: nothing, as turns are given again.
type Turns struct {
	// Notify is told of each ClusterAddon that gets a turn.
	Notify func(clusterAddon client.ObjectKey)

	mu     sync.RWMutex
	stacks map[client.ObjectKey]given
}

// given are the turns of one stack, by the names of ClusterAddons.
type given struct {
	revision string
	clusters sets.Set[string]
}

// Give replaces all turns of a stack: the clusters that don't have the revision yet may be brought to it. Turns to
// another revision are taken back.
func (t *Turns) Give(stack client.ObjectKey, revision string, clusters sets.Set[string]) {
	t.mu.Lock()
	before := t.stacks[stack]
	if t.stacks == nil {
		t.stacks = map[client.ObjectKey]given{}
	}
	if t.stacks[stack] = (given{revision, clusters}); len(clusters) == 0 {
		delete(t.stacks, stack)
	}
	t.mu.Unlock()
	for cluster := range clusters {
		if before.revision != revision || !before.clusters.Has(cluster) {
			t.Notify(client.ObjectKey{Namespace: stack.Namespace, Name: cluster})
		}
	}
}

// To returns the clusters with a turn to a revision of a stack. The set isn't to be changed.
func (t *Turns) To(stack client.ObjectKey, revision string) sets.Set[string] {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if g := t.stacks[stack]; g.revision == revision {
		return g.clusters
	}
	return nil
}
