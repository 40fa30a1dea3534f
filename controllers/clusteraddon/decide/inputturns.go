// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// InputOutcome is what a look at a cluster showed.
type InputOutcome int

const (
	// InputsGoOn says that the cluster is on its way, or that nothing can be seen of it.
	InputsGoOn InputOutcome = iota
	// InputsEnded says that the cluster is ready, gone, or at another revision.
	InputsEnded
	// InputsFailed says that the cluster has failed.
	InputsFailed
	// InputsStopped says that nothing is done on the cluster, as while it is paused.
	InputsStopped
)

// InputTurns are the clusters of a stack that get inputs which no revision has, or wait for that. Concurrent is how many
// may be on their way. While more than MaxFailed failed, no other begins. One that is on its way for longer than Within
// counts as failed.
type InputTurns struct {
	Concurrent, MaxFailed int
	Within                time.Duration

	clusters map[string]*inputTurn
	last     int  // place that was given to a cluster that waits
	untold   bool // that a cluster failed, to those that wait
}

// inputTurn is that of one cluster.
type inputTurn struct {
	place   int       // among those that wait, zero if it doesn't
	given   time.Time // when it got its turn
	running bool      // its turn hasn't ended
	taken   bool      // it took its turn
	failed  bool
	asked   bool // in the look that is under way
}

// Restore notes a cluster that began in an earlier process.
func (q *InputTurns) Restore(cluster string, given time.Time, failed bool) {
	*q.of(cluster) = inputTurn{given: given, running: !failed, taken: true, failed: failed}
}

// Ask reports whether a cluster may begin now, or has begun. Forced says that a person wants it to.
func (q *InputTurns) Ask(cluster string, now time.Time, forced bool) bool {
	t := q.of(cluster)
	t.asked, t.running = true, t.running && t.taken // others may have failed since it was given
	if !q.isOnWay(t, now) {
		if !forced && !q.mayBegin(t, now) {
			if t.place == 0 {
				q.last++
				t.place = q.last
			}
			return false
		}
		q.give(t, now)
	}
	t.taken = true
	return true
}

// Settle notes what a look at a cluster showed. It returns when the cluster last began, zero once that has ended.
func (q *InputTurns) Settle(cluster string, outcome InputOutcome) time.Time {
	t := q.of(cluster)
	if !t.asked {
		t.place = 0
	}
	t.asked, t.running = false, t.running && t.taken
	switch {
	case !t.taken && !t.failed, outcome == InputsEnded, outcome == InputsStopped && !t.failed:
		*t = inputTurn{place: t.place}
	case outcome == InputsFailed:
		q.untold = q.untold || !t.failed
		t.failed, t.running = true, false
	case outcome == InputsStopped:
		t.running = false
	}
	if !t.taken && !t.failed && t.place == 0 {
		delete(q.clusters, cluster)
	}
	return t.given
}

// Next gives turns to clusters that wait, and returns those to look at: these, and after a failure all that wait.
func (q *InputTurns) Next(now time.Time) (look []string) {
	byPlace := slices.SortedFunc(maps.Keys(q.clusters), func(a, b string) int { return cmp.Compare(q.clusters[a].place, q.clusters[b].place) })
	for _, failedFirst := range []bool{true, false} {
		for _, name := range byPlace {
			if t := q.clusters[name]; t.place > 0 && t.failed == failedFirst {
				switch {
				case q.mayBegin(t, now):
					q.give(t, now)
				case !q.untold:
					continue
				}
				look = append(look, name)
			}
		}
	}
	q.untold = false
	return look
}

// Until returns when the first cluster that is on its way will have failed; zero if none is on its way.
func (q *InputTurns) Until(now time.Time) (first time.Time) {
	for _, t := range q.clusters {
		if end := t.given.Add(q.Within); q.isOnWay(t, now) && (first.IsZero() || end.Before(first)) {
			first = end
		}
	}
	return first
}

// Failed returns the clusters that failed, in order.
func (q *InputTurns) Failed(now time.Time) (failed []string) {
	for _, name := range slices.Sorted(maps.Keys(q.clusters)) {
		if q.hasFailed(q.clusters[name], now) {
			failed = append(failed, name)
		}
	}
	return failed
}

// Waiting returns the clusters that wait, in any order.
func (q *InputTurns) Waiting() (waiting []string) {
	for name, t := range q.clusters {
		if t.place > 0 {
			waiting = append(waiting, name)
		}
	}
	return waiting
}

// IsEmpty reports whether no cluster has a turn, or waits for one.
func (q *InputTurns) IsEmpty() bool { return len(q.clusters) == 0 }

func (q *InputTurns) of(cluster string) *inputTurn {
	if q.clusters == nil {
		q.clusters = map[string]*inputTurn{}
	}
	if q.clusters[cluster] == nil {
		q.clusters[cluster] = &inputTurn{}
	}
	return q.clusters[cluster]
}

func (q *InputTurns) give(t *inputTurn, now time.Time) {
	t.failed = q.hasFailed(t, now)
	t.place, t.given, t.running, t.taken = 0, now, true, false
}

func (q *InputTurns) isOnWay(t *inputTurn, now time.Time) bool {
	return t.running && now.Before(t.given.Add(q.Within))
}

func (q *InputTurns) hasFailed(t *inputTurn, now time.Time) bool {
	return t.failed || t.running && !q.isOnWay(t, now)
}

// mayBegin reports whether there is a place for a cluster. One that failed may try other inputs, however many failed.
func (q *InputTurns) mayBegin(t *inputTurn, now time.Time) bool {
	running := 0
	for _, other := range q.clusters {
		if q.isOnWay(other, now) {
			running++
		}
	}
	return running < q.Concurrent && (q.hasFailed(t, now) || len(q.Failed(now)) <= q.MaxFailed)
}
