// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"slices"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// InputTurns are the clusters of a stack that get inputs which no revision has, or wait for that. Concurrent is how many
// may be on their way. While more than MaxFailed failed, no other begins. One that is on its way for longer than Within
// has failed.
type InputTurns struct {
	Concurrent, MaxFailed int
	Within                time.Duration

	clusters map[string]*inputTurn
}

// inputTurn is that of one cluster.
type inputTurn struct {
	since, began    time.Time // of the first and the last try; zero without a turn
	onWay, failed   bool      // one that failed, and is on its way with other inputs, is both
	wasIll          bool      // when it began, for another reason: then it doesn't count as failed
	waits, isAsking bool
}

// Know notes a cluster by its status, unless it is known better.
func (q *InputTurns) Know(cluster string, is addonsv1.StackStatus) {
	if q.clusters == nil {
		q.clusters = map[string]*inputTurn{}
	}
	if q.clusters[cluster] == nil {
		began := !is.InputsChanged.IsZero()
		q.clusters[cluster] = &inputTurn{since: is.InputsChanged.Time, began: is.InputsChanged.Time, onWay: began && !isIll(is.State), failed: began && isIll(is.State)}
	}
}

// Ask reports whether a known cluster may begin now, or has begun. Forced says that a person wants it to.
func (q *InputTurns) Ask(cluster string, state addonsv1.StackState, now time.Time, forced bool) bool {
	t := q.clusters[cluster]
	t.isAsking = true
	isOnWay := func(t *inputTurn) bool { return t.onWay && !q.isLate(t, now) }
	hasFailed := q.hasFailed(t, now)
	switch {
	case isOnWay(t):
	case !forced && (len(q.those(isOnWay)) >= q.Concurrent || !hasFailed && len(q.Failed(now)) > q.MaxFailed):
		t.waits = true
		return false
	default:
		if !hasFailed {
			t.since = now // else each try would be a write of the status
		}
		*t = inputTurn{since: t.since, began: now, onWay: true, failed: hasFailed, wasIll: !hasFailed && isIll(state), isAsking: true}
	}
	return true
}

// Settle notes in which state a look found a known cluster: "" if the turn ends, whatever the state is. It returns since when
// the cluster has its turn, zero without one, and those to look at now.
func (q *InputTurns) Settle(cluster string, state addonsv1.StackState) (since time.Time, look []string) {
	t := q.clusters[cluster]
	before := *t
	t.waits, t.isAsking = t.waits && t.isAsking, false
	switch {
	case isIll(state) && !t.wasIll && !t.began.IsZero():
		t.onWay, t.failed = false, true
	case state == "", state == addonsv1.StackReady, isIll(state):
		*t = inputTurn{waits: t.waits}
	}
	switch look = q.Waiting(); {
	case t.failed != before.failed: // each of them is to say so
	case t.onWay != before.onWay, t.waits != before.waits:
		look = look[:min(len(look), q.Concurrent)]
	default:
		look = nil
	}
	return t.since, look
}

// Forget drops a cluster that is gone, and returns those to look at now.
func (q *InputTurns) Forget(cluster string) []string {
	delete(q.clusters, cluster)
	return q.Waiting()
}

// Waiting returns the clusters that wait, first those that failed.
func (q *InputTurns) Waiting() []string {
	return slices.Concat(q.those(func(t *inputTurn) bool { return t.waits && t.failed }), q.those(func(t *inputTurn) bool { return t.waits && !t.failed }))
}

// Failed returns the clusters that failed.
func (q *InputTurns) Failed(now time.Time) []string {
	return q.those(func(t *inputTurn) bool { return q.hasFailed(t, now) })
}

func (q *InputTurns) those(are func(t *inputTurn) bool) (names []string) {
	for name, t := range q.clusters {
		if are(t) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (q *InputTurns) hasFailed(t *inputTurn, now time.Time) bool {
	return t.failed || q.isLate(t, now) && !t.wasIll
}

func (q *InputTurns) isLate(t *inputTurn, now time.Time) bool {
	return t.onWay && !now.Before(t.began.Add(q.Within))
}

func isIll(state addonsv1.StackState) bool {
	return state == addonsv1.StackFailed || state == addonsv1.StackDegraded
}
