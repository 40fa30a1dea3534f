// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import "time"

// When to look after a change of a CRD. The API server shows a new group in discovery
// at once, or nearly so; a kind that comes to a group it knows already, with the
// aggregator's next round, once a minute.
const (
	soonAfter, lateAfter = 2 * time.Second, 75 * time.Second
	// leastBetween is the least time between two looks. It doubles up to mostBetween
	// with each that shows nothing new, while changes go on.
	leastBetween, mostBetween = 10 * time.Second, 5 * time.Minute
)

// looks say when to look at a cluster's kinds, by the changes that were heard of.
type looks struct {
	soon, late time.Time // zero: not due
	last       time.Time
	between    time.Duration
}

// heard takes in a change.
func (l *looks) heard(now time.Time) {
	if l.soon.IsZero() && l.late.IsZero() {
		l.between = leastBetween // it was quiet
	}
	if l.soon.IsZero() {
		l.soon = now.Add(soonAfter)
	}
	l.late = now.Add(lateAfter)
}

// next returns when to look; zero if nothing is due.
func (l *looks) next() time.Time {
	next := l.soon
	if next.IsZero() || !l.late.IsZero() && l.late.Before(next) {
		next = l.late
	}
	if least := l.last.Add(l.between); !next.IsZero() && next.Before(least) {
		return least
	}
	return next
}

// looked takes in a look, and whether there was something new.
func (l *looks) looked(now time.Time, news bool) {
	l.last, l.soon = now, time.Time{}
	if !now.Before(l.late) {
		l.late = time.Time{}
	}
	if l.between = min(2*l.between, mostBetween); news {
		l.between = leastBetween
	}
}
