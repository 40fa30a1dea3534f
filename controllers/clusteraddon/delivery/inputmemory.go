// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/result"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// InputTurns limit how many clusters of a stack with spec.rollout get inputs at once that no revision has.
//
// Key: the AddonStack, and the ClusterAddon.
// Bound: until the ClusterAddon is gone.
// Lost with it: which clusters wait, and each of them asks again. The statuses have those that began.
type InputTurns struct {
	mu     sync.Mutex
	stacks map[client.ObjectKey]*decide.InputTurns
}

// of returns the turns of an AddonStack, none at first. The lock is to be held.
func (m *InputTurns) of(key client.ObjectKey) *decide.InputTurns {
	if m.stacks == nil {
		m.stacks = map[client.ObjectKey]*decide.InputTurns{}
	}
	if m.stacks[key] == nil {
		m.stacks[key] = &decide.InputTurns{}
	}
	return m.stacks[key]
}

// Waiting returns the ClusterAddons that wait for others of an AddonStack, of which other limits may hold now.
func (m *InputTurns) Waiting(_ context.Context, written client.Object) []client.ObjectKey {
	m.mu.Lock()
	defer m.mu.Unlock()
	return keysIn(written.GetNamespace(), m.of(client.ObjectKeyFromObject(written)).Waiting())
}

// Settle notes what a look at a cluster showed of each stack, and writes into the status since when it gets other inputs. It
// returns the ClusterAddons that may be next. Nothing is done on a cluster that is blocked: it has no turn, unless it failed.
// Nor has one that is at another revision: that is a rollout's.
func (m *InputTurns) Settle(before, ca *addonsv1.ClusterAddon, blocked bool) (next []client.ObjectKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, was := range before.Status.Stacks {
		key := client.ObjectKey{Namespace: ca.Namespace, Name: was.Name}
		if m.stacks[key] == nil && was.InputsChanged.IsZero() {
			continue
		}
		is, state := stack.StatusOf(&ca.Status, was.Name), result.StateOf(was.Name, ca.Status.Addons)
		if is.Revision != was.Revision || blocked && state != addonsv1.StackFailed && state != addonsv1.StackDegraded {
			state = ""
		}
		m.of(key).Know(ca.Name, was)
		since, look := m.of(key).Settle(ca.Name, state)
		is.InputsChanged = result.TimeOf(since)
		next = append(next, keysIn(ca.Namespace, look)...)
	}
	return next
}

// Forget drops a ClusterAddon that is gone, and returns those that may be next.
func (m *InputTurns) Forget(gone client.ObjectKey) (next []client.ObjectKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, turns := range m.stacks {
		if key.Namespace == gone.Namespace {
			next = append(next, keysIn(gone.Namespace, turns.Forget(gone.Name))...)
		}
	}
	return next
}

func keysIn(namespace string, names []string) (keys []client.ObjectKey) {
	for _, name := range names {
		keys = append(keys, client.ObjectKey{Namespace: namespace, Name: name})
	}
	return keys
}
