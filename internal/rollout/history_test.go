// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/rollout"
)

// fleet is a fleet as it really is, and as a cache that is behind shows it.
type fleet struct {
	*rand.Rand
	seed      uint64
	now       time.Time
	strategy  rollout.Strategy
	revisions []rollout.Revision // the newest first
	clusters  map[string]*cluster
	shown     map[string]cluster
	turns     map[string]string // by cluster: given, and maybe not written yet
	bad       map[string]sets.Set[string]
	approved  sets.Set[string]
	made      int
	calm      bool // nothing fails by itself, and the cache follows
}

type cluster struct {
	rollout.Cluster
	reported string           // the revision that State is about
	had      sets.Set[string] // revisions that it was ready at: its records have them
}

func newFleet(seed uint64) *fleet {
	f := &fleet{
		seed: seed, Rand: rand.New(rand.NewPCG(seed, 1)), now: time.Unix(1e9, 0), clusters: map[string]*cluster{}, shown: map[string]cluster{},
		turns: map[string]string{}, bad: map[string]sets.Set[string]{}, approved: sets.New[string](),
	}
	size, third := intstr.FromInt32(int32(1+f.IntN(3))), intstr.FromString("30%")
	f.strategy = rollout.Strategy{
		Waves: []rollout.Wave{
			{Name: "canary", Selector: labels.SelectorFromSet(labels.Set{"stage": "canary"}), MaxConcurrent: intstr.FromInt32(1), Soak: time.Duration(f.IntN(3)) * time.Hour},
			{Name: "few", Size: &size, MaxConcurrent: third, Soak: time.Duration(f.IntN(2)) * time.Hour, NeedsApproval: f.IntN(4) == 0},
			{Name: "rest", MaxConcurrent: intstr.FromString([]string{"10%", "50%", "100%"}[f.IntN(3)])},
		},
		MaxFailed:   []intstr.IntOrString{intstr.FromInt32(0), intstr.FromInt32(1), intstr.FromString("20%")}[f.IntN(3)],
		ReadyWithin: time.Hour, RollsBack: f.IntN(2) == 0,
	}
	f.edit(false)
	f.revisions[0].Completed = f.IntN(2) == 0
	for range 2 + f.IntN(20) {
		f.join()
	}
	return f
}

func (f *fleet) names() []string { return slices.Sorted(maps.Keys(f.clusters)) }

func (f *fleet) edit(followed bool) {
	f.made++
	name := fmt.Sprint("r", f.made)
	f.bad[name] = sets.New[string]()
	if f.IntN(3) == 0 {
		for _, c := range f.names() {
			if f.IntN(2) == 0 {
				f.bad[name].Insert(c)
			}
		}
	}
	f.revisions = slices.Insert(f.revisions, 0, rollout.Revision{Name: name, Followed: followed})
}

// replaceInputs changes values in place: all revisions so far are of the previous ones, and another one follows.
func (f *fleet) replaceInputs() {
	for i := range f.revisions {
		f.revisions[i].Replaced = true
	}
	f.edit(true)
}

// restoreInputs puts the values back that a revision was made with.
func (f *fleet) restoreInputs() {
	f.revisions[f.IntN(len(f.revisions))].Replaced = false
}

// join adds a cluster. A new one gets a revision at once, an old one that is selected now waits for its turn.
func (f *fleet) join() {
	f.made++
	c := &cluster{Cluster: rollout.Cluster{Name: fmt.Sprint("c", f.made), Labels: labels.Set{}, WasReady: true}}
	if f.IntN(6) == 0 {
		c.Labels["stage"] = "canary"
	}
	entry := rollout.Completed(f.revisions)
	if (entry < 0 || f.revisions[entry].Replaced) && f.IntN(2) == 0 {
		entry = rollout.Target(f.revisions)
	}
	if entry >= 0 && f.revisions[entry].Replaced {
		entry = -1
	}
	if entry >= 0 {
		c.Assigned = f.revisions[entry].Name
	}
	f.clusters[c.Name] = c
}

func (f *fleet) isReplaced(revision string) bool {
	return slices.ContainsFunc(f.revisions, func(r rollout.Revision) bool { return r.Name == revision && r.Replaced })
}

// live lets the clusters do their work.
func (f *fleet) live() {
	for _, name := range f.names() {
		c := f.clusters[name]
		if turn, given := f.turns[name]; given && c.Away == "" && c.Assigned != turn && f.IntN(2) == 0 {
			c.Assigned = turn
		}
		isBad := f.bad[c.Assigned].Has(name) || !c.had.Has(c.Assigned) && f.isReplaced(c.Assigned)
		if c.State == addonsv1.StackReady && c.reported == c.Assigned {
			c.had = c.had.Union(sets.New(c.Assigned))
		}
		switch {
		case c.Away != "" || c.Assigned == "":
		case c.reported != c.Assigned:
			c.WasReady = c.reported == "" || c.State == addonsv1.StackReady || c.State == addonsv1.StackProgressing && c.WasReady
			c.reported, c.State, c.Since, c.Started = c.Assigned, addonsv1.StackProgressing, f.now, f.now
		case c.State == addonsv1.StackProgressing && (f.calm || f.IntN(3) == 0):
			if c.State, c.Since = addonsv1.StackReady, f.now; isBad {
				c.State = addonsv1.StackFailed
			}
		case c.State == addonsv1.StackFailed && !isBad:
			c.State, c.Since = addonsv1.StackReady, f.now
		case c.State == addonsv1.StackReady && !f.calm && f.IntN(500) == 0:
			c.State, c.Since = addonsv1.StackFailed, f.now
		}
	}
	for _, name := range f.names() {
		if _, known := f.shown[name]; !known || f.calm || f.IntN(3) > 0 {
			f.shown[name] = *f.clusters[name]
		}
	}
}

// input is made of what the cache shows, as the controller makes it.
func (f *fleet) input() (in rollout.Input, target int) {
	if target = rollout.Target(f.revisions); target < 0 {
		return rollout.Input{}, target
	}
	in = rollout.Input{Now: f.now, Strategy: f.strategy, Approved: f.approved}
	in.Aim(f.revisions, target)
	unfinished := rollout.Unfinished(f.revisions, target)
	for _, name := range slices.Sorted(maps.Keys(f.shown)) {
		shown := f.shown[name]
		c := shown.Cluster
		switch turn, given := f.turns[name]; {
		case !given || c.Assigned == turn:
		case turn == in.Target:
			c.Assigned = turn
		default:
			delete(f.turns, name) // a turn to another revision is taken back
		}
		if shown.reported != c.Assigned {
			c.Started = time.Time{}
			c.WasReady = shown.reported == "" || shown.State == addonsv1.StackReady || shown.State == addonsv1.StackProgressing && shown.WasReady
			if c.Assigned == in.Target {
				c.State = addonsv1.StackProgressing
			}
		}
		c.Unfinished = unfinished.Has(c.Assigned)
		in.Clusters = append(in.Clusters, c)
	}
	return in, target
}

func (f *fleet) decide(t *testing.T) rollout.Decision {
	t.Helper()
	in, target := f.input()
	if target < 0 {
		return rollout.Decision{}
	}
	d := rollout.Decide(in)
	if again := rollout.Decide(in); !reflect.DeepEqual(d, again) {
		t.Fatalf("the same input has another decision:\n%+v\n%+v", d, again)
	}
	f.check(t, in, d)
	r := &f.revisions[target]
	for _, name := range d.Start {
		f.turns[name] = in.Target
		r.Started = true
	}
	r.Started = r.Started || slices.ContainsFunc(in.Clusters, func(c rollout.Cluster) bool { return c.Assigned == in.Target })
	r.Completed = r.Completed || d.Phase == addonsv1.RolloutCompleted
	r.Rejected = r.Rejected || d.Reject
	return d
}

// check looks for decisions that may never be, by what the fleet really is.
func (f *fleet) check(t *testing.T, in rollout.Input, d rollout.Decision) {
	t.Helper()
	if !d.Next.IsZero() && !d.Next.After(in.Now) {
		t.Fatalf("wakes in the past: %+v", d)
	}
	if d.Reject && (in.Known || !in.Awaited && (!in.HasPrevious || !in.Strategy.RollsBack)) {
		t.Fatal("rejects with nothing to go to")
	}
	if len(d.Start) == 0 {
		return
	}
	if !in.Known && in.Target != f.revisions[0].Name && f.isReplaced(in.Target) {
		t.Fatalf("seed %d: starts clusters that can't get %s any more", f.seed, in.Target)
	}
	if in.Stop.Phase != "" || d.Phase == addonsv1.RolloutHalted {
		t.Fatalf("starts while it is stopped: %+v", d)
	}
	running := 0
	for _, name := range f.names() {
		c := f.clusters[name]
		shown, known := f.shown[name]
		if !known {
			continue // it has just come, and got the revision of those that join
		}
		underWay := c.Assigned == in.Target || f.turns[name] == in.Target
		over := c.reported == in.Target && c.State != addonsv1.StackProgressing || c.Away != "" || shown.Away != ""
		late := c.reported == in.Target && !f.now.Before(c.Started.Add(f.strategy.ReadyWithin))
		if underWay && !over && !late && !slices.Contains(d.Start, name) { // a cache that is behind has it started again
			running++
		}
	}
	steps := f.strategy.Waves
	if in.Known {
		steps = steps[2:]
	}
	for _, name := range d.Start {
		at := slices.IndexFunc(in.Clusters, func(c rollout.Cluster) bool { return c.Name == name })
		c := in.Clusters[at]
		if c.Away != "" || c.Assigned == in.Target {
			t.Fatalf("starts %+v", c)
		}
	}
	last := 0 // the wave that the last starts are in: all before it are over
	for i, c := range d.Waves {
		if !in.Known && len(c.Failed) > rollout.AtMost(f.strategy.MaxFailed, c.Total) {
			t.Fatalf("seed %d: starts though wave %d failed: %+v", f.seed, i, d)
		}
		if i <= d.Wave && c.Total > 0 {
			last = i
		}
	}
	for k := range last {
		if c := d.Waves[k]; !in.Known && !in.Approved.Has(rollout.All) && c.Total > 0 && (c.Done == 0 || in.Now.Before(c.ReadySince.Add(steps[k].Soak))) {
			t.Fatalf("seed %d: starts wave %d before the soak of %d is over: %+v", f.seed, last, k, d)
		}
	}
	if steps[last].NeedsApproval && !in.Approved.HasAny(rollout.All, steps[last].Name) {
		t.Fatalf("starts %s without approval", steps[last].Name)
	}
	if most := atLeastOne(steps[last].MaxConcurrent, d.Waves[last].Total); running+len(d.Start) > most {
		t.Fatalf("seed %d: %d under way and %d started, at most %d: %+v\n%+v", f.seed, running, len(d.Start), most, d, f.clusters)
	}
}

func atLeastOne(limit intstr.IntOrString, total int) int {
	n, _ := intstr.GetScaledValueFromIntOrPercent(&limit, total, true)
	return max(n, 1)
}

// disturb does one of the things that happen to fleets.
func (f *fleet) disturb() {
	names := f.names()
	some := f.clusters[names[f.IntN(len(names))]]
	switch f.IntN(15) {
	case 0:
		f.join()
	case 1:
		if len(names) > 2 {
			delete(f.clusters, some.Name)
			delete(f.shown, some.Name)
			delete(f.turns, some.Name)
		}
	case 2:
		some.Labels = labels.Set{"stage": []string{"canary", "prod"}[f.IntN(2)]}
	case 3, 4:
		some.Away, some.Unreachable, some.AwaySince = "Unreachable", true, f.now
	case 5:
		some.Away, some.Unreachable, some.AwaySince = "Paused", false, f.now
	case 6, 7:
		some.Away, some.Unreachable = "", false
	case 8:
		if f.IntN(3) == 0 {
			f.edit(false)
		}
	case 9:
		f.edit(true)
	case 10: // the process is killed: turns that weren't written are lost, and the cache is new
		f.turns = map[string]string{}
		for name, c := range f.clusters {
			f.shown[name] = *c
		}
	case 11:
		f.approved.Insert("few")
	case 13:
		if f.IntN(3) == 0 {
			f.replaceInputs()
		}
	case 14:
		f.restoreInputs()
	case 12:
		if f.IntN(10) == 0 {
			f.revisions[0].Rejected = !f.revisions[0].Rejected
		}
	}
}

// TestRandomHistories has fleets live through random events, with decisions in between.
func TestRandomHistories(t *testing.T) {
	histories := uint64(1000)
	if n, err := strconv.ParseUint(os.Getenv("CHANDLER_ROLLOUT_HISTORIES"), 10, 64); err == nil {
		histories = n
	}
	phases, starts := map[addonsv1.RolloutPhase]int{}, 0
	for seed := range histories {
		f := newFleet(seed)
		for range 60 {
			f.live()
			if f.IntN(3) == 0 {
				f.disturb()
			}
			d := f.decide(t)
			phases[d.Phase]++
			starts += len(d.Start)
			f.now = f.now.Add(time.Duration(1+f.IntN(600)) * time.Second)
			if !d.Next.IsZero() && f.IntN(4) == 0 {
				f.now = d.Next
			}
		}
		f.settle(t, seed)
	}
	t.Logf("%d histories, %d starts, phases %v", histories, starts, phases)
}

// settle lets a good edit come to its end: no cluster is left out for ever.
func (f *fleet) settle(t *testing.T, seed uint64) {
	t.Helper()
	for _, c := range f.clusters {
		c.Away, c.Unreachable = "", false
	}
	f.calm = true
	f.edit(false)
	f.bad[f.revisions[0].Name] = nil
	f.approved.Insert("few")
	var d rollout.Decision
	for range 2000 {
		f.live()
		d = f.decide(t)
		arrived := d.Phase == addonsv1.RolloutCompleted && rollout.Target(f.revisions) == 0
		for _, c := range f.clusters {
			arrived = arrived && c.Assigned == f.revisions[0].Name && c.State == addonsv1.StackReady
		}
		if arrived {
			return
		}
		f.now = f.now.Add(5 * time.Minute)
	}
	in, _ := f.input()
	t.Fatalf("seed %d: a good revision doesn't come to its end: %+v\n%+v\n%+v", seed, d, f.revisions, in.Clusters)
}
