// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// pauseStack pauses or resumes a stack.
func (f *fleet) pauseStack() bool {
	s := f.braked(func(s *stack) bool { return s.paused })
	if !f.now().stacks[s].exists {
		return false
	}
	f.act("pause %s: %t", stackName(s), !f.now().stacks[s].paused)
	f.editStack(s, func(m *model) { m.stacks[s].paused = !m.stacks[s].paused })
	return true
}

// braked returns a stack, mostly one of which something is so already: it is to end, so that clusters lose add-ons, too.
func (f *fleet) braked(is func(*stack) bool) int {
	if f.random.IntN(4) > 0 {
		for s := range stacks {
			if of := &f.now().stacks[s]; of.exists && is(of) {
				return s
			}
		}
	}
	return f.random.IntN(stacks)
}

// pauseCluster pauses or unpauses a Cluster.
func (f *fleet) pauseCluster() bool {
	c := f.random.IntN(len(f.workloads))
	if is := slices.IndexFunc(f.now().clusters, func(c cluster) bool { return c.paused }); is >= 0 && f.random.IntN(4) > 0 {
		c = is
	}
	if !f.now().clusters[c].exists {
		return false
	}
	f.setPaused(c, !f.now().clusters[c].paused)
	return true
}

func (f *fleet) setPaused(c int, paused bool) {
	f.t.Helper()
	f.act("pause %s: %t", clusterName(c), paused)
	f.change(func(m *model) { m.clusters[c].paused = paused }, func() {
		text := `{"spec":{"paused":null}}`
		if paused {
			text = `{"spec":{"paused":true}}`
		}
		f.patch(f.hub(), &clusterv1.Cluster{ObjectMeta: f.named(clusterName(c))}, text)
	})
}

// orphanStack has a stack leave its add-ons behind, or not any more. It may delete the stack at once.
func (f *fleet) orphanStack() bool {
	s := f.braked(func(s *stack) bool { return s.orphan })
	if !f.now().stacks[s].exists {
		return false
	}
	f.act("have %s leave its add-ons behind: %t", stackName(s), !f.now().stacks[s].orphan)
	f.editStack(s, func(m *model) {
		of := &m.stacks[s]
		of.orphan = !of.orphan
		for k := range components {
			m.components[k].adopt = m.components[k].adopt || of.orphan && (of.has[k] || m.mayHave(s, k))
		}
	})
	if f.now().stacks[s].orphan && f.random.IntN(3) == 0 {
		f.settle(12 * time.Second)
		f.deleteStack(s)
	}
	return true
}

// deleteStack deletes a stack. What Chandler can't know of it by then doesn't count.
func (f *fleet) deleteStack(s int) {
	f.t.Helper()
	if f.now().stacks[s].paused {
		f.settle(12 * time.Second)
	}
	sealed := f.knows(func(m *model) bool { return m.stacks[s].exists && m.stacks[s].paused })
	orphan := f.knows(func(m *model) bool { return m.stacks[s].exists && m.stacks[s].orphan })
	f.act("delete %s, which is paused: %t, and leaves its add-ons behind: %t", stackName(s), sealed, orphan)
	f.change(func(m *model) {
		m.stacks[s].exists, m.stacks[s].sealed, m.stacks[s].orphan = false, sealed, orphan
	}, func() { f.remove(f.hub(), f.stackOf(f.now(), s)) })
}

// moveInTwo has a component go from one stack to another by two requests, with some time between them. At no time is it
// unwanted.
func (f *fleet) moveInTwo() bool {
	k, to, isFirst := f.random.IntN(components), f.random.IntN(stacks), f.random.IntN(2) == 0
	gap := time.Duration(f.random.IntN(3000)) * time.Millisecond
	from := f.now().stackWith(k)
	if from < 0 || from == to || !f.now().stacks[to].exists || f.now().stacks[from].isLast(k) {
		return false
	}
	f.act("move %s from %s to %s with %s between, there first: %t", f.now().release(k), stackName(from), stackName(to), gap, isFirst)
	first, second := from, to
	if isFirst {
		first, second = to, from
	}
	f.change(func(m *model) {
		for _, s := range []int{from, to} {
			m.stacks[s].allowed, m.stacks[s].leaving = nil, nil
			m.stacks[s].has[k] = s == to
		}
	}, func() {
		begin := time.Now()
		f.writeStack(first)
		time.Sleep(gap)
		f.writeStack(second)
		if time.Since(begin) > inTime {
			f.late[k] = time.Now()
		}
	})
	return true
}

// inTime is how long the two requests of a move may take. Chandler waits for a little longer.
const inTime = 3300 * time.Millisecond

// endBrakes ends pauses, holds and what else keeps clusters from what is wanted. Some stacks keep their rollout.
func (f *fleet) endBrakes() {
	f.t.Helper()
	for c := range f.workloads {
		if f.now().clusters[c].exists && f.now().clusters[c].paused {
			f.setPaused(c, false)
		}
		f.setHeld(c, false, "")
	}
	for s := range stacks {
		if !f.now().stacks[s].exists {
			continue
		}
		keeps := f.random.IntN(2) == 0
		f.editStack(s, func(m *model) {
			m.stacks[s].paused, m.stacks[s].orphan = false, false
			if m.stacks[s].rollout != nil && keeps {
				m.stacks[s].rollout = &addonsv1.Rollout{MinReady: &metav1.Duration{}, MaxConcurrent: percent(100), MaxFailed: percent(100)}
			} else {
				m.stacks[s].rollout = nil
			}
		})
	}
}
