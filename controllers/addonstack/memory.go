// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/following"
	"github.com/cluster-chandler/chandler/controllers/addonstack/pacing"
	"github.com/cluster-chandler/chandler/controllers/addonstack/rollouts"
)

// memory holds the facts that this process knows of one stack. Only a single reconcile at a time
// uses it.
//
// Key: the AddonStack, and its UID.
// Bound: until it is gone.
// Lost with it: versions are looked for once more, and its clusters are counted at once. See also [rollouts.Memory].
type memory struct {
	uid     types.UID
	request pacing.Request
	poll    following.Poll
	rollout rollouts.Memory
	counted pacing.Count
}

// memories are those of all stacks. The zero value is empty.
type memories struct{ ofStacks sync.Map } // client.ObjectKey to *memory

// of returns the memory of a stack. It is empty if the stack is new to this process.
func (m *memories) of(s *addonsv1.AddonStack) *memory {
	key := client.ObjectKeyFromObject(s)
	if known, ok := m.ofStacks.Load(key); ok && known.(*memory).uid == s.UID {
		return known.(*memory)
	}
	fresh := &memory{uid: s.UID}
	m.ofStacks.Store(key, fresh)
	return fresh
}

// forget drops the memory of a stack that is gone.
func (m *memories) forget(stack client.ObjectKey) { m.ofStacks.Delete(stack) }
