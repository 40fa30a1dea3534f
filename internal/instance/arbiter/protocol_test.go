// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// visit is a state on the way.
type visit struct {
	step
	from *visit
}

func (v *visit) way() []string {
	var way []string
	for ; v.from != nil; v = v.from {
		way = append(way, v.String())
	}
	slices.Reverse(way)
	return way
}

// explore goes through all that can happen, nearest first. It returns the way
// to the first violation, if there is one, the number of different states, and
// whether these were all.
func explore(s *setup) (way []string, states int, all bool) {
	first := &visit{step: step{next: begin(s)}}
	seen := map[string]bool{first.next.key(): true}
	for queue := []*visit{first}; len(queue) > 0; queue = queue[1:] {
		for _, next := range queue[0].next.steps() {
			v := &visit{step: next, from: queue[0]}
			if v.next.violated() {
				return v.way(), len(seen), false
			}
			if key := v.next.key(); !seen[key] {
				seen[key] = true
				queue = append(queue, v)
			}
			if len(seen) == s.limit {
				return nil, len(seen), false
			}
		}
	}
	return nil, len(seen), true
}

// wander takes random histories. It returns the way to the first violation, and
// in how many states a process ran.
func wander(s *setup, random *rand.Rand, histories, length int) (way []string, active int) {
	for range histories {
		v := &visit{step: step{next: begin(s)}}
		for range length {
			steps := v.next.steps()
			v = &visit{step: steps[random.IntN(len(steps))], from: v}
			if v.next.violated() {
				return v.way(), active
			}
			if slices.ContainsFunc(v.next.processes[:], func(p process) bool { return p.phase.runs() }) {
				active++
			}
		}
	}
	return nil, active
}

func team(namespaces ...string) addonsv1.ProviderInstanceSpec {
	return addonsv1.ProviderInstanceSpec{Namespaces: namespaces}
}

func withLease(spec addonsv1.ProviderInstanceSpec) addonsv1.ProviderInstanceSpec {
	spec.LeaseName = "lease"
	return spec
}

// setups are the situations that are looked at. Where limit is 0, all that can
// happen is.
func setups() map[string]*setup {
	one, two, three := team("a"), team("a", "b"), team("b")
	pair := []addonsv1.ProviderInstanceSpec{one, two}
	return map[string]*setup{
		"two instances": {
			objects: pair, processes: []int{0, 1}, replicas: 1, watching: 1,
		},
		"two instances, of which one may crash": {
			objects: pair, processes: []int{0, 1}, replicas: 1, watching: 1, crashes: 1, limit: 100_000, // of 450,774
		},
		"two instances, and a replica of the webhook that restarts": {
			objects: pair, processes: []int{0, 1}, replicas: 2, watching: 2, forgets: 1, limit: 50_000,
		},
		"two instances, and replicas whose watch doesn't work": {
			objects: pair, processes: []int{0, 1}, replicas: 2, crashes: 1, limit: 50_000,
		},
		"an instance with a next leader": {
			objects: []addonsv1.ProviderInstanceSpec{withLease(one), two}, processes: []int{0, 1}, replicas: 2, watching: 1, crashes: 1, limit: 50_000,
		},
		"two processes with one name": {
			objects: pair[:1], processes: []int{0, 0}, replicas: 1, watching: 1, crashes: 1,
		},
		"an object that is deleted by hand": {
			objects: pair, processes: []int{0, 1}, replicas: 1, watching: 1, deletions: 1, limit: 100_000, // of 354,134
		},
		"three instances": {
			objects: append(pair, three), processes: []int{0, 1, 2}, replicas: 2, watching: 1, crashes: 1, forgets: 1, limit: 50_000,
		},
	}
}

// Whatever happens, in whatever order: no two processes with overlapping scopes
// run controllers at the same time.
func TestNoTwoInstancesRunInOneScope(t *testing.T) {
	for name, s := range setups() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			way, states, all := explore(s)
			t.Logf("%d states", states)
			if way != nil {
				t.Errorf("two processes run in one scope:\n%s", strings.Join(way, "\n"))
			}
			if s.limit == 0 && !all || s.limit > 0 && states < s.limit {
				t.Errorf("%d states were looked at, all: %v", states, all)
			}
		})
	}
}

// The same, far from the start: long random histories.
func TestNoTwoInstancesRunInOneScopeForLong(t *testing.T) {
	for name, s := range setups() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.crashes = 100 // in effect without bound
			if s.deletions == 0 {
				s.forgets = 100 // a replica that forgets doesn't know of deleted objects
			}
			seed := rand.Uint64()
			way, active := wander(s, rand.New(rand.NewPCG(seed, 0)), 50, 1000)
			if way != nil {
				t.Errorf("seed %d: two processes run in one scope:\n%s", seed, strings.Join(way, "\n"))
			}
			if active == 0 {
				t.Errorf("seed %d: no process ever ran", seed)
			}
		})
	}
}

// Each part of the protocol is needed: without it the same exploration finds a
// way to two processes in one scope.
func TestWeakerProtocolsFail(t *testing.T) {
	for weak, name := range map[weakness]string{
		oneStep:           "two instances, of which one may crash",
		claimsDontCount:   "two instances, of which one may crash",
		staleList:         "two instances, and replicas whose watch doesn't work",
		noFence:           "two instances, of which one may crash",
		lateAnswersCount:  "two instances, of which one may crash",
		specIsNoSign:      "two instances, of which one may crash",
		versionsDontCount: "two processes with one name",
		unseenIsDead:      "two instances, and a replica of the webhook that restarts",
		oneStepHandover:   "an instance with a next leader",
		namesAreFree:      "two processes with one name",
		deletedIsGone:     "an object that is deleted by hand",
	} {
		t.Run(string(weak), func(t *testing.T) {
			t.Parallel()
			s := setups()[name]
			s.weakness, s.limit = weak, 200_000
			if weak == oneStepHandover {
				s.past = []string{
					"process 0 asks replica 0 to claim", "the request of process 0 is stored",
					"process 0 asks replica 0 to be active", "the request of process 0 is stored", "process 0 has its answer",
				}
			}
			way, states, all := explore(s)
			if way == nil {
				t.Fatalf("nothing was found in %d states (all: %v): the exploration can't see this fault", states, all)
			}
			t.Logf("found after %d states:\n%s", states, strings.Join(way, "\n"))
		})
	}
}
