// SPDX-License-Identifier: Apache-2.0

// Package pacing says when an AddonStack is looked at again, as users or its clusters may ask for that often.
package pacing

import (
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// The clusters of a stack are counted at once while they are few. Each further cluster adds to
// the time between two counts. Else a fleet of which all clusters change would take the square of
// their number.
const (
	countedAtOnce = 100
	countPause    = time.Millisecond
	maxCountPause = 5 * time.Second
)

// Count is when the clusters of a stack were counted last. The zero value is never.
type Count struct{ at time.Time }

// Wait returns how long the next count has to wait, 0 if it is due; then it takes it that they are counted. A new spec doesn't wait.
func (m *Count) Wait(s *addonsv1.AddonStack, isNew bool, now time.Time) time.Duration {
	if c := s.Status.Clusters; c != nil && !isNew {
		pause := min(time.Duration(max(0, c.Total-countedAtOnce))*countPause, maxCountPause)
		if wait := m.at.Add(pause).Sub(now); wait > 0 {
			return wait
		}
	}
	m.at = now
	return 0
}
