// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/result"
)

// noteChanges writes the changes of a reconcile into the history, and those that no write has brought there.
func (q Report) noteChanges(changes []addonsv1.AddonChange, now time.Time) {
	for _, change := range changes {
		change.Time = result.TimeOf(now)
		q.Memory.unwritten = append(q.Memory.unwritten, change)
	}
	q.Memory.unwritten = q.Memory.unwritten[max(0, len(q.Memory.unwritten)-addonsv1.MaxHistory):]
	for _, change := range q.Memory.unwritten {
		q.ClusterAddon.Status.History = WithChange(q.ClusterAddon.Status.History, change)
	}
}

// Written notes that the status was written, unless that failed: then the next one has the changes.
func (m *Memory) Written(err error) {
	if err == nil {
		m.unwritten = nil
	}
}

// WithChange returns the history with one more change. A repair takes the place of the one before of the add-on, as one may follow
// another for ever.
func WithChange(history []addonsv1.AddonChange, is addonsv1.AddonChange) []addonsv1.AddonChange {
	isRepeated := func(was addonsv1.AddonChange) bool {
		return is.Cause == addonsv1.ChangeRepaired && was.Cause == is.Cause && was.Addon == is.Addon && was.Namespace == is.Namespace && was.Stack == is.Stack
	}
	history = slices.Insert(slices.DeleteFunc(slices.Clone(history), isRepeated), 0, is)
	return history[:min(len(history), addonsv1.MaxHistory)]
}
