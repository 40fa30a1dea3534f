// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/instance"
)

// A model of all that takes part in the protocol: processes that claim, the API
// server that stores, and the replicas of the webhook. Their rules and observers
// are the real ones. Each thing that can happen is one step; time is one of them.

const (
	most = 3 // processes, and objects

	expirySeconds = 3
	fenceSeconds  = 2 // two thirds: then a process ends itself
)

// weakness leaves out a part of the protocol, to see that the part is needed.
type weakness string

const (
	oneStep           weakness = "Active without Claiming"
	claimsDontCount   weakness = "Claiming holds nothing"
	staleList         weakness = "the LIST is not consistent"
	noFence           weakness = "a process that can't write continues"
	lateAnswersCount  weakness = "an answer may come late"
	specIsNoSign      weakness = "only heartbeats are signs of life"
	oneStepHandover   weakness = "the next leader continues in one step"
	namesAreFree      weakness = "anyone may write an object"
	unseenIsDead      weakness = "what wasn't seen before is gone"
	deletedIsGone     weakness = "a deleted object holds nothing"
	versionsDontCount weakness = "the API server stores over any version"
)

// setup is who takes part, and how often the rare things may happen.
type setup struct {
	objects   []addonsv1.ProviderInstanceSpec // what claims: scope and lease
	processes []int                           // for each process the object it writes
	replicas  int                             // of the webhook
	watching  int                             // so many of them see each change at once, the others by LIST alone

	crashes, deletions, forgets int // forgets are restarts of replicas

	weakness weakness
	past     []string // the steps before the exploration begins
	limit    int      // of states, 0 for all
}

type phase byte

const (
	ended phase = iota
	idle
	claimed
	running
	remaking  // runs, and makes its object again that somebody deleted
	reclaimed // as remaking, and has claimed
)

// runs says whether the controllers run.
func (p phase) runs() bool { return p >= running }

type process struct {
	phase       phase
	incarnation int
	deadline    int      // it may run, and believe in its claim, before this time
	request     *request // in flight
	orphan      *request // in flight, from before a crash
}

// request has passed admission, and isn't stored yet. It is never changed.
type request struct {
	claim   addonsv1.ScopeClaim // "" is a heartbeat
	holder  string
	sent    int
	version int       // of the object that admission was shown, 0 if there was none
	uid     types.UID // of the object that a heartbeat is for
	stored  bool
}

// world is a state of it all. Steps work on copies; what pointers and maps lead
// to is never changed.
type world struct {
	*setup
	now, version                int
	crashes, deletions, forgets int
	objects                     [most]*addonsv1.ProviderInstance
	processes                   [most]process
	observers                   [2]map[types.UID]sighting
}

// step is a thing that can happen next.
type step struct {
	what  string
	which []int
	next  *world
}

func (s step) String() string {
	var which []any
	for _, n := range s.which {
		which = append(which, n)
	}
	return fmt.Sprintf(s.what, which...)
}

func begin(s *setup) *world {
	w := &world{setup: s}
	for i := range s.processes {
		w.processes[i].phase = idle
	}
	for _, past := range s.past {
		steps := w.steps()
		i := slices.IndexFunc(steps, func(next step) bool { return next.String() == past })
		if i < 0 {
			panic("this can't happen: " + past)
		}
		w = steps[i].next
	}
	return w
}

// steps returns all that can happen now.
func (w *world) steps() []step {
	var all []step
	add := func(next *world, what string, which ...int) {
		if next != nil {
			all = append(all, step{what, which, next})
		}
	}
	add(w.tick(), "time passes")
	for i := range w.setup.processes {
		for r := range w.replicas {
			add(w.ask(i, r, addonsv1.ScopeClaiming), "process %d asks replica %d to claim", i, r)
			add(w.ask(i, r, addonsv1.ScopeActive), "process %d asks replica %d to be active", i, r)
		}
		add(w.heartbeat(i), "process %d sends a heartbeat", i)
		add(w.store(i), "the request of process %d is stored", i)
		add(w.answer(i), "process %d has its answer", i)
		add(w.crash(i), "process %d crashes", i)
		add(w.start(i), "process %d starts", i)
		add(w.end(i), "process %d ends in order", i)
		add(w.storeOrphan(i), "the request of crashed process %d is stored", i)
	}
	for i := range w.setup.objects {
		add(w.deleteByHand(i), "object %d is deleted by hand", i)
	}
	for r := range w.replicas {
		add(w.forget(r), "replica %d restarts", r)
	}
	return all
}

func (w *world) copied() *world {
	c := *w
	return &c
}

// violated says that two processes manage the same objects.
func (w *world) violated() bool {
	for i := range w.setup.processes {
		for j := range i {
			a, b := w.setup.objects[w.setup.processes[i]], w.setup.objects[w.setup.processes[j]]
			if w.processes[i].phase.runs() && w.processes[j].phase.runs() && instance.ScopeOf(&a).Overlaps(instance.ScopeOf(&b)) {
				return true
			}
		}
	}
	return false
}
