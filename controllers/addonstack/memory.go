// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// memory holds the facts that this process knows of one stack. Only a single reconcile at a time
// uses it.
//
// Key: the AddonStack, and its UID.
// Bound: until it is gone.
// Lost with it: versions are looked for once more, its clusters are counted at once, and no event tells how a rollout of
// several instances differs from before.
type memory struct {
	uid     types.UID
	request request
	poll    versionPoll
	// knowsTurns says that turns of an earlier process were looked for.
	knowsTurns bool
	// told is the rollout as events told it last, nil before the first look.
	told *addonsv1.RolloutStatus
	// counted is when the clusters were counted last.
	counted time.Time
}

// memoryOf returns the memory of a stack. It is empty if the stack is new to this process.
func (r *Reconciler) memoryOf(s *addonsv1.AddonStack) *memory {
	key := client.ObjectKeyFromObject(s)
	if known, ok := r.memories.Load(key); ok && known.(*memory).uid == s.UID {
		return known.(*memory)
	}
	fresh := &memory{uid: s.UID}
	r.memories.Store(key, fresh)
	return fresh
}

// The clusters of a stack are counted at once while they are few. Each further cluster adds to
// the time between two counts. Else a fleet of which all clusters change would take the square of
// their number.
const (
	countedAtOnce = 100
	countPause    = time.Millisecond
	maxCountPause = 5 * time.Second
)

// pace returns how long the next count has to wait, 0 if it is due. A new spec doesn't wait.
func (m *memory) pace(s *addonsv1.AddonStack, now time.Time) time.Duration {
	if c := s.Status.Clusters; c != nil && m.request.generation == s.Generation {
		pause := min(time.Duration(max(0, c.Total-countedAtOnce))*countPause, maxCountPause)
		if wait := m.counted.Add(pause).Sub(now); wait > 0 {
			return wait
		}
	}
	m.counted = now
	return 0
}

// lookNowPause is the least time between two polls that users ask for, as hosts limit requests.
const lookNowPause = 5 * time.Second

// request is what users asked for last: by an edit of the spec, or by the annotation look-now.
type request struct {
	generation int64
	lookNow    string    // the value that is acted on
	since      time.Time // zero if the value was there from the start
}

// update takes up what is asked for now, and reports whether that is new. It returns how
// long a newer value of the annotation has to wait, 0 if there is none.
func (q *request) update(s *addonsv1.AddonStack, now time.Time) (isNew bool, wait time.Duration) {
	value, first := s.Annotations[addonsv1.LookNowAnnotation], q.generation == 0
	isNew = !first && q.generation != s.Generation
	q.generation = s.Generation
	switch {
	case first:
		q.lookNow = value
	case value != q.lookNow:
		if wait = q.since.Add(lookNowPause).Sub(now); wait > 0 {
			return isNew, wait
		}
		q.lookNow, q.since, isNew = value, now, true
	}
	return isNew, 0
}
