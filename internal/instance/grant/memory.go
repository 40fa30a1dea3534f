// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Memory has when the sign of life of each instance changed, by the clock of this process, as
// leader election has it of leases. An instance that it hasn't seen before counts from now.
//
// Key: the UID of the ProviderInstance.
// Bound: the instances that are there, and maxDeleted of each namespace that were deleted.
// Lost with it: a silent instance counts as alive for longer, a deleted one as gone.
type Memory struct {
	clock clock.PassiveClock

	mu        sync.Mutex
	sightings map[types.UID]sighting
	// vanished has when a watch showed the end of objects, until no list is evaluated that may still show them.
	vanished map[types.UID]time.Time
}

type sighting struct {
	instance *addonsv1.ProviderInstance // never changed
	since    time.Time                  // when its sign of life was seen first
	deleted  bool
}

// maxDeleted bounds how many deleted instances of a namespace are remembered. Who deletes more of its
// own has nobody but itself to keep from their scopes.
const maxDeleted = 64

// NewMemory returns a memory that has seen nothing yet.
func NewMemory(c clock.PassiveClock) *Memory {
	return &Memory{clock: c, sightings: map[types.UID]sighting{}, vanished: map[types.UID]time.Time{}}
}

// Change is a status that is to be written over the version that was evaluated, and over no other.
type Change struct{ Before, After *addonsv1.ProviderInstance }

// Evaluate takes in all ProviderInstances, as a list showed them that was asked for at asOf, after all earlier lists were
// evaluated. It returns how their statuses are to change, and after which time a silent one expires.
func (m *Memory) Evaluate(stored []addonsv1.ProviderInstance, asOf time.Time) (changes []Change, next time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.vanished, func(_ types.UID, at time.Time) bool { return at.Before(asOf) })
	stored = slices.DeleteFunc(stored, func(pi addonsv1.ProviderInstance) bool { _, isGone := m.vanished[pi.UID]; return isGone })
	all := make([]*addonsv1.ProviderInstance, 0, len(stored))
	there := make(map[types.UID]bool, len(stored))
	for i := range stored {
		all = append(all, &stored[i])
		there[stored[i].UID] = true
		m.see(&stored[i])
	}
	all = append(all, m.deleted(there, asOf)...)
	next = time.Hour
	for i := range stored {
		pi := &stored[i]
		left := m.remaining(pi.UID, asOf)
		if left > 0 {
			next = min(next, left)
		}
		switch {
		case left <= 0 && (isTaken(pi) || !IsExpired(pi)):
			changes = append(changes, Change{Before: pi, After: expired(pi, m.clock.Now())})
		case left > 0 && isWanted(pi):
			after := pi.DeepCopy()
			after.Status.Grant = answer(pi, all)
			if !equality.Semantic.DeepEqual(pi.Status.Grant, after.Status.Grant) {
				changes = append(changes, Change{Before: pi, After: after})
			}
		}
	}
	return changes, next
}

// deleted returns the instances whose object is gone, and whose process may not know that yet. Until a watch
// has shown the end of one, there may have been heartbeats that it hasn't shown either.
func (m *Memory) deleted(there map[types.UID]bool, asOf time.Time) []*addonsv1.ProviderInstance {
	var gone []*addonsv1.ProviderInstance
	for uid, s := range m.sightings {
		if there[uid] {
			continue
		}
		if !s.deleted {
			s.deleted, s.since = true, m.clock.Now()
			m.sightings[uid] = s
		}
		if !isTaken(s.instance) || m.remaining(uid, asOf) <= 0 {
			delete(m.sightings, uid)
			continue
		}
		pi := s.instance.DeepCopy()
		pi.DeletionTimestamp = &metav1.Time{Time: asOf}
		gone = append(gone, pi)
	}
	return gone
}

// Vanish takes in the last state of an object that a watch showed the end of.
func (m *Memory) Vanish(pi *addonsv1.ProviderInstance) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.vanished[pi.UID] = m.clock.Now()
	number := 0
	for _, s := range m.sightings {
		if s.deleted && s.instance.Namespace == pi.Namespace {
			number++
		}
	}
	if !isTaken(pi) || number >= maxDeleted {
		delete(m.sightings, pi.UID)
		return
	}
	m.see(pi)
	m.sightings[pi.UID] = sighting{instance: pi, since: m.sightings[pi.UID].since, deleted: true}
}

// see remembers when the sign of life changed: the heartbeat, or the spec when a process takes over. Lists
// that lag make that later, and never earlier.
func (m *Memory) see(pi *addonsv1.ProviderInstance) {
	s, known := m.sightings[pi.UID]
	if !known || s.instance.Generation != pi.Generation || !s.instance.Status.HeartbeatTime.Equal(&pi.Status.HeartbeatTime) {
		s.since = m.clock.Now()
	}
	s.instance, s.deleted = pi, false
	m.sightings[pi.UID] = s
}

// remaining counts from before the list was asked for: a sign of life after that would have been seen.
func (m *Memory) remaining(uid types.UID, asOf time.Time) time.Duration {
	s := m.sightings[uid]
	return expiry(s.instance) - asOf.Sub(s.since)
}
