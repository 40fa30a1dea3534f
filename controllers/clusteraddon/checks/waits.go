// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"time"

	"github.com/cluster-chandler/chandler/internal/retry"
)

// Memory of the conditions of an add-on that don't hold.
//
// Key: the field that the condition is in.
// Bound: the add-on's fields with conditions.
// Lost with it: less time counts as waited.
type Memory struct{ since map[string]time.Time }

// wait notes that conditions don't hold, and returns when to look at them again: after a quarter of the time that they
// have been waited for. The objects are anyone's, so they aren't watched.
func (m *Memory) wait(field string, now time.Time) *Unmet {
	since, known := m.since[field]
	if !known {
		if m.since == nil {
			m.since = map[string]time.Time{}
		}
		m.since[field], since = now, now
	}
	waited := now.Sub(since)
	return &Unmet{RetryAfter: min(max(waited/4, retry.Condition.First), retry.Condition.Longest), Waited: waited}
}
