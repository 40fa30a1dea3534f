// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"slices"
	"time"

	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/repair"
	"github.com/cluster-chandler/chandler/internal/drift"
	"github.com/cluster-chandler/chandler/internal/fleetwatch"
)

const (
	// checkInterval is about how often objects are read that no event tells of: they can't be watched, or are left as they are.
	checkInterval = 10 * time.Minute
	// RepairRate is how many repairs of one cluster begin in a second, because a cluster may make up changes.
	RepairRate = 2
	// RepairBurst is how many repairs of one cluster may begin at once.
	RepairBurst = 20
)

// DriftMemory is what is remembered of an add-on's drift.
//
// Key: the add-on.
// Bound: the objects of the add-on that others change.
// Lost with it: fights are counted from the beginning, and objects are compared once more.
type DriftMemory struct {
	contests map[deliver.ObjectKey]*drift.Contest
	// failed is what came of a repair that is to be tried again, nil if the last went well.
	failed *deliver.Outcome
	// lookAt is when to compare the objects again though no event came; zero for never.
	lookAt time.Time
	// revision is that of the release which these two are about.
	revision int
}

// TurnTo forgets the failure of another revision.
func (m *DriftMemory) TurnTo(revision int) {
	if m.revision != revision {
		m.revision, m.failed, m.lookAt = revision, nil, time.Time{}
	}
}

// LookAt has the objects compared at a time though no event comes.
func (m *DriftMemory) LookAt(at time.Time) { m.lookAt = at }

// IsDue reports whether it is time to compare the objects though no event came.
func (m *DriftMemory) IsDue(now time.Time, state fleetwatch.State) bool {
	if m.lookAt.IsZero() {
		return len(state.Unwatched) > 0
	}
	return !now.Before(m.lookAt)
}

// wait returns a function that says how long an object is left to others.
func (m *DriftMemory) wait(now time.Time) func(deliver.ObjectKey, []drift.Change) time.Duration {
	return func(key deliver.ObjectKey, changes []drift.Change) time.Duration {
		if c := m.contests[key]; c != nil {
			return c.Wait(now, changes)
		}
		return 0
	}
}

// Note takes in what was repaired.
func (m *DriftMemory) Note(now time.Time, found []repair.Difference) {
	for key, c := range m.contests {
		if c.IsOver(now) {
			delete(m.contests, key)
		}
	}
	for _, d := range slices.Backward(found) {
		if !d.Repaired {
			continue
		}
		if m.contests == nil {
			m.contests = map[deliver.ObjectKey]*drift.Contest{}
		}
		if m.contests[d.Object] == nil {
			m.contests[d.Object] = &drift.Contest{}
		}
		m.contests[d.Object].Repaired(now, d.Changes)
	}
}

// IsFought reports whether somebody insists on a change of the object.
func (m *DriftMemory) IsFought(key deliver.ObjectKey) bool {
	c := m.contests[key]
	return c != nil && c.IsFight()
}
