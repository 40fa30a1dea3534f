// SPDX-License-Identifier: Apache-2.0

package grant_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// weakness leaves out a part of the protocol, to see that the part is needed.
type weakness string

const (
	oneStep           weakness = "a reservation counts as a grant"
	mixedList         weakness = "the LIST is not consistent"
	noFence           weakness = "a process that can't write continues"
	versionsDontCount weakness = "the API server stores a status over any version"
	deletedIsGone     weakness = "a deleted object holds nothing"
	grantsForEver     weakness = "a grant that was seen once is believed for ever"
)

// setup is who takes part: processes by the object that they write, and which rare things happen.
type setup struct {
	processes []int
	lease     bool // processes of one object are elected by a lease
	watches   bool // the watches of processes that grant are never behind, and people delete objects
	restarts  bool // of processes that grant: they forget who was deleted
}

func setups() map[string]setup {
	return map[string]setup{
		"two instances":                   {processes: []int{0, 1}, restarts: true},
		"two instances, deleted by hand":  {processes: []int{0, 1}, watches: true},
		"three instances":                 {processes: []int{0, 1, 2}, restarts: true},
		"next leaders":                    {processes: []int{0, 0, 1}, lease: true, restarts: true},
		"next leaders, deleted by hand":   {processes: []int{0, 0, 1}, lease: true, watches: true},
		"two processes without a lease":   {processes: []int{0, 0, 1}, restarts: true},
		"processes of three, all at once": {processes: []int{0, 0, 1, 1, 2}, restarts: true},
	}
}

// steps is how many things happen in a history.
const steps = 800

// wander lets things happen at random. It returns the way to two processes that run in one scope, nil if there was none. runs
// is how many times a process began to run.
func wander(s setup, weak weakness, seed uint64) (way []string, runs int) {
	w := newWorld(s, weak, rand.New(rand.NewPCG(seed, 0)))
	for range steps {
		way = append(way, fmt.Sprintf("%3d s: %s", w.second, w.step()))
		var active []int
		for i, p := range w.processes {
			if p.phase == running {
				active = append(active, i)
			}
		}
		if len(active) > 1 { // all scopes overlap
			return append(way, fmt.Sprintf("processes %v run", active)), w.runs
		}
	}
	return nil, w.runs
}

// Whatever happens, in whatever order: no two processes with overlapping scopes run controllers at the same time.
func TestNoTwoInstancesRunInOneScope(t *testing.T) {
	const histories = 300 // of each setup
	for name, s := range setups() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, runs := rand.Uint64(), 0
			for i := range uint64(histories) {
				way, began := wander(s, "", first+i)
				runs += began
				if way != nil {
					t.Fatalf("seed %d:\n%s", first+i, strings.Join(way, "\n"))
				}
			}
			t.Logf("%d histories, in which processes began to run %d times", histories, runs)
			if runs < histories {
				t.Error("hardly any process ever ran")
			}
		})
	}
}

// Each part of the protocol is needed: without it the same histories have two processes that run in one scope. Rare ones begin a few
// seeds before one that is known.
func TestWeakerProtocolsFail(t *testing.T) {
	for weak, in := range map[weakness]struct {
		setup string
		first uint64
	}{
		oneStep: {"two instances", 340}, mixedList: {"two instances", 0}, noFence: {"two instances", 0}, grantsForEver: {"two instances", 0},
		versionsDontCount: {"three instances", 1_500}, deletedIsGone: {"two instances, deleted by hand", 0},
	} {
		t.Run(string(weak), func(t *testing.T) {
			t.Parallel()
			for i := range uint64(2_000) {
				if way, _ := wander(setups()[in.setup], weak, in.first+i); way != nil {
					return
				}
			}
			t.Error("nothing was found: the histories can't show this fault")
		})
	}
}

// An instance whose rivals are gone gets its scope: refusals don't last.
func TestScopeIsGrantedInTheEnd(t *testing.T) {
	for seed := range uint64(300) {
		w := newWorld(setups()["three instances"], "", rand.New(rand.NewPCG(seed, 0)))
		for range 200 {
			w.step()
		}
		for i := range w.processes[1:] {
			w.crash(i + 1)
		}
		for range 20 * expirySeconds {
			w.tick()
			w.beatAtOnce(0)
			for g := range w.granters {
				w.watchDeletion(g)
				w.list(g)
				w.evaluate(g)
				for len(w.granters[g].changes) > 0 {
					w.storeChange(g)
				}
			}
		}
		if w.processes[0].phase != running {
			t.Fatalf("seed %d: the last process never gets its scope: %+v", seed, w.objects[0].Status.Grant)
		}
	}
}
