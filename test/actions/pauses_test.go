// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"slices"
	"time"

	"github.com/cluster-chandler/chandler/test/audit"
)

// underWay is how long a write may take that was decided on before a pause, on a busy machine.
const underWay = 10 * time.Second

// evaluatePause expects nothing to be written for a component while its Cluster, or each stack that may have it, is paused.
func (j *evaluate) evaluatePause(k int, e *audit.Event) {
	j.t.Helper()
	at := e.RequestReceivedTimestamp.Time
	from := sinceLast(j.rests, at, underWay)
	if at.After(j.resumed.Add(-time.Second)) && at.Before(j.resumed.Add(lag)) && j.pause.Add(-underWay).Before(from) {
		from = j.pause.Add(-underWay)
	}
	lasting := j.during(from, at)
	isPaused := func(is func(*model) bool) bool {
		for _, m := range lasting {
			if !is(m.model) {
				return false
			}
		}
		return true
	}
	for _, m := range j.during(at.Add(-lag), at) {
		if m.isRemade {
			return
		}
	}
	if isPaused(func(m *model) bool { return m.clusters[j.cluster].exists && m.clusters[j.cluster].paused }) {
		j.t.Errorf("%s: %s %s at %s, though the Cluster is paused%s", clusterName(j.cluster), e.Verb, e.RequestURI, at.UTC().Format("15:04:05.000"), j.trail(k))
		return
	}
	since, _ := j.unevenSince(k, at)
	owners := map[int]bool{}
	for _, m := range append(j.believable(at, since), lasting[0].model) {
		if is := m.shares[share{j.cluster, k}]; is.standing != kept {
			owners[is.stack] = true
			for s, gives := range is.givers {
				owners[s] = owners[s] || gives
			}
		}
		for s := range m.stacks {
			owners[s] = owners[s] || m.stacks[s].has[k]
		}
	}
	for s := range j.lastOwners(k, at) {
		owners[s] = true
	}
	for s, is := range owners {
		if is && lasting[len(lasting)-1].stacks[s].paused {
			j.writes++
		}
	}
	for s, is := range owners {
		if is && !isPaused(func(m *model) bool { return m.stacks[s].exists && m.stacks[s].paused }) {
			return
		}
		if !is {
			delete(owners, s)
		}
	}
	if len(owners) > 0 {
		j.t.Errorf("%s: %s %s at %s, though each stack that may have it is paused: %v%s%s",
			clusterName(j.cluster), e.Verb, e.RequestURI, at.UTC().Format("15:04:05.000"), owners, j.trail(k), j.plans())
	}
}

// lastOwners returns the stacks that were the last ones to have the component by each of its names: their releases may still
// be there.
func (f *fleet) lastOwners(k int, at time.Time) map[int]bool {
	owners, seen := map[int]bool{}, map[int]bool{}
	for _, m := range slices.Backward(f.moments) {
		if s := m.stackWith(k); s >= 0 && m.begin.Before(at) && !seen[m.components[k].name] {
			owners[s], seen[m.components[k].name] = true, true
		}
	}
	return owners
}

// wasLeft reports whether a stack may have left the component to Helm within some time, and have it by another name since.
// By the same name, it is adopted with its password.
func (j *evaluate) wasLeft(k int, from, to time.Time) bool {
	since := from.Add(-lag)
	if uneven, is := j.unevenSince(k, to); is && uneven.Before(since) {
		since = uneven
	}
	left, names := false, map[int]bool{}
	for _, m := range j.during(since, to) {
		names[m.components[k].name] = true
		is := m.shares[share{j.cluster, k}]
		left = left || m.stacks[is.stack].orphan && is.standing != kept
	}
	return left && len(names) > 1
}
