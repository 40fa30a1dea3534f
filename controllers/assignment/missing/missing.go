// SPDX-License-Identifier: Apache-2.0

// Package missing remembers AddonStacks, and tells of one that isn't there whether it may be back in a moment.
package missing

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/assignment/candidate"
)

// DeletionGrace is how long an AddonStack has to be gone before its add-ons go. A
// stack that is replaced (kubectl replace --force, a GitOps tool) is back by then. A
// namespace that is deleted with it says so by then, and CRDs that go no longer offer it.
// An AddonStack that loses add-ons or clusters has to be so for that time, too: kubectl
// apply gives them to another one with its next request.
const DeletionGrace = 4 * time.Second

// Stacks remembers the AddonStacks that were there, since when they are as they are, and those that are missing.
//
// Key: the AddonStack; of its parents, the namespace.
// Bound: a day after a stack was last asked about.
// Lost with it: each removal that hasn't begun does so DeletionGrace later; an edit that comes just before a deletion, and a
// crash between, is lost. Whether the stack went with its CRD is seen by the CRD's age.
type Stacks struct {
	discovery Discovery
	reader    client.Reader // of the API server
	clock     clock.Clock

	mu      sync.Mutex
	stacks  *cache.Expiring // client.ObjectKey to *memory
	parents *cache.Expiring // namespace to parents, for the many clusters of a stack that ask
}

// memory is of one AddonStack.
type memory struct {
	// seen is when the stack was there, and since from when on it wasn't; zero if that wasn't seen.
	seen, since time.Time
	// written has the policies of the stack as it was last written; zero if that wasn't seen.
	written addonsv1.StackRevision
	// withParent is set if the stack was deleted with its CRD or its namespace. Such a deletion is no
	// wish to uninstall.
	withParent bool
	// version says what is in force of a stack that is there, and changed when this process first saw that.
	version string
	changed time.Time
	// renewed is when the stack was last remembered for another day.
	renewed time.Time
}

// A stack is remembered for a day, and for another one if an hour of that is over. The cache has an entry for each time until that
// ends, and each cluster asks whenever it is reconciled.
const (
	kept     = 24 * time.Hour
	renewing = time.Hour
)

// New returns a memory of no stacks.
func New(discovery Discovery, apiReader client.Reader, clock clock.Clock) *Stacks {
	return &Stacks{
		discovery: discovery, reader: apiReader, clock: clock,
		stacks: cache.NewExpiringWithClock(clock), parents: cache.NewExpiringWithClock(clock),
	}
}

// MayReturn reports whether a stack that the API server doesn't have may be back in a moment. The stack was
// assigned to the ClusterAddon, and may have gone while this process didn't run.
func (m *Stacks) MayReturn(ctx context.Context, key client.ObjectKey, ca *addonsv1.ClusterAddon) (bool, error) {
	are, err := m.parentsIn(ctx, key.Namespace)
	if err != nil {
		return true, err
	}
	return m.clock.Since(m.absent(key, ca.CreationTimestamp.Time, are)) < DeletionGrace, nil
}

// absent notes that a stack isn't there, and returns since when. It was there when it was last seen, or when a
// ClusterAddon was made that it is assigned to.
func (m *Stacks) absent(key client.ObjectKey, made time.Time, are parents) (since time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	is := m.of(key)
	if is.since.IsZero() {
		is.since = m.clock.Now()
	}
	if !is.seen.IsZero() {
		made = is.seen
	}
	is.withParent = is.withParent || !are.intact || are.since.After(made)
	m.remember(key, is)
	return is.since
}

// Present notes that the stacks of a namespace are there.
func (m *Stacks) Present(namespace string, stacks []candidate.Stack) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range stacks {
		c, now := &stacks[i], m.clock.Now()
		key, is := client.ObjectKey{Namespace: namespace, Name: c.Name}, memory{seen: now, written: c.At(""), version: c.Version(), changed: now}
		if was := m.of(key); was.version == is.version && was.since.IsZero() {
			is.changed = was.changed
		}
		m.remember(key, is)
	}
}

// Note notes what is written in a stack. It may be gone before any cluster is decided on.
func (m *Stacks) Note(s *addonsv1.AddonStack) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := client.ObjectKeyFromObject(s)
	is := m.of(key)
	is.written = candidate.Written(s)
	m.remember(key, is)
}

// IsDeletedWithParent reports whether a stack was deleted with its CRD or its namespace.
func (m *Stacks) IsDeletedWithParent(key client.ObjectKey) bool { return m.known(key).withParent }

// Written returns the policies of a stack as it was last written, zero if that wasn't seen.
func (m *Stacks) Written(key client.ObjectKey) addonsv1.StackRevision { return m.known(key).written }

// Changed returns when this process first saw a stack as it is, zero if it never did.
func (m *Stacks) Changed(key client.ObjectKey) time.Time { return m.known(key).changed }

// known returns what is remembered of a stack, zero for nothing.
func (m *Stacks) known(key client.ObjectKey) memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of(key)
}

// of is known, while the stacks are locked.
func (m *Stacks) of(key client.ObjectKey) memory {
	if is, ok := m.stacks.Get(key); ok {
		return *is.(*memory)
	}
	return memory{}
}

// remember keeps what is known of a stack, while the stacks are locked.
func (m *Stacks) remember(key client.ObjectKey, is memory) {
	now := m.clock.Now()
	if before, ok := m.stacks.Get(key); ok && now.Sub(before.(*memory).renewed) < renewing {
		is.renewed = before.(*memory).renewed
		*before.(*memory) = is
		return
	}
	is.renewed = now
	m.stacks.Set(key, &is, kept)
}
