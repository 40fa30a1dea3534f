// SPDX-License-Identifier: Apache-2.0

package place_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/cluster-chandler/chandler/controllers/assigner/place"
)

// fleet is Clusters by index, whose labels are as they were decided.
type fleet []place.Cluster

func newFleet(size int) fleet {
	all := make(fleet, size)
	for i := range all {
		all[i] = place.Cluster{Namespace: fmt.Sprint("team-", i%7), Name: fmt.Sprint("cluster-", i)}
	}
	return all
}

func named(names ...string) (all []place.Instance) {
	for _, name := range names {
		all = append(all, place.Instance{Filter: name})
	}
	return all
}

// ten returns the names of ten instances.
func ten() (names []string) {
	for i := range 10 {
		names = append(names, fmt.Sprint("instance-", i))
	}
	return names
}

// decide writes the labels of one decision, and returns how many Clusters moved.
func (f fleet) decide(t *testing.T, instances []place.Instance, moves int) (moved int) {
	t.Helper()
	places := map[string]int{}
	for i := range f {
		places[f[i].Namespace+"/"+f[i].Name] = i
	}
	for _, label := range place.Next(f, instances, moves) {
		c := &f[places[label.Namespace+"/"+label.Name]]
		if label.Move != (c.Filter != "") || label.Filter == c.Filter || c.Busy {
			t.Fatalf("%+v for %+v", label, *c)
		}
		if label.Move {
			moved++
		}
		c.Filter, c.Assigned = label.Filter, true
	}
	if moved > moves {
		t.Errorf("%d moves are more than %d", moved, moves)
	}
	return moved
}

// expectEven allows 3% from even.
func (f fleet) expectEven(t *testing.T, instances ...string) {
	t.Helper()
	loads := map[string]int{}
	for i := range f {
		loads[f[i].Filter]++
	}
	for _, name := range instances {
		if mean := float64(len(f)) / float64(len(instances)); math.Abs(float64(loads[name])-mean) > 0.03*mean {
			t.Errorf("%s has %d Clusters of %.0f", name, loads[name], mean)
		}
	}
}

const unlimited = math.MaxInt

func TestSpread(t *testing.T) {
	f, names := newFleet(10_000), ten()
	if moved := f.decide(t, named(names...), 0); moved > 0 {
		t.Errorf("%d Clusters moved", moved)
	}
	f.expectEven(t, names...)
	if moved := f.decide(t, named(names...), unlimited); moved > 0 {
		t.Errorf("%d Clusters moved, though all is even", moved)
	}

	more, atLeast := append(names, "one-more"), 10_000/11
	moved := f.decide(t, named(more...), unlimited)
	t.Logf("one more: %d moves, %d at least", moved, atLeast)
	if float64(moved) > 1.1*float64(atLeast) {
		t.Errorf("one more instance moved %d Clusters", moved)
	}
	f.expectEven(t, more...)

	all, before := named(more...), 0
	all[3].Drain = true
	for i := range f {
		if f[i].Filter == all[3].Filter {
			before++
		}
	}
	moved = f.decide(t, all, unlimited)
	t.Logf("one less: %d moves, %d at least", moved, before)
	if float64(moved) > 1.1*float64(before) {
		t.Errorf("one instance less moved %d Clusters of %d", moved, before)
	}
	left := slices.Delete(slices.Clone(more), 3, 4)
	f.expectEven(t, left...)
}

// TestFewAtATime reaches the same with a few moves at a time.
func TestFewAtATime(t *testing.T) {
	f, names := newFleet(500), ten()
	f.decide(t, named(names[:9]...), 0)
	rounds := 0
	for f.decide(t, named(names...), 7) > 0 {
		rounds++
	}
	f.expectEven(t, names...)
	if rounds < 500/10/7 || rounds > 500/10/7+2 {
		t.Errorf("it took %d rounds", rounds)
	}
}

func TestWhatStays(t *testing.T) {
	a, b := place.Instance{Filter: "a"}, place.Instance{Filter: "b", Namespaces: []string{"team-1"}}
	ending := place.Instance{Filter: "ending", Drain: true}
	for name, c := range map[string]struct {
		cluster   place.Cluster
		instances []place.Instance
		want      string
	}{
		"no label":                            {place.Cluster{}, []place.Instance{a}, "a"},
		"no label, and being deleted":         {place.Cluster{Busy: true}, []place.Instance{a}, ""},
		"no instance":                         {place.Cluster{}, nil, ""},
		"an instance of all filters":          {place.Cluster{}, []place.Instance{{}}, ""},
		"no instance of the namespace":        {place.Cluster{Namespace: "team-2"}, []place.Instance{b}, ""},
		"a filter that another namespace has": {place.Cluster{Namespace: "team-2", Filter: "b", Assigned: true}, []place.Instance{a, {Filter: "b", Namespaces: []string{"team-1"}, Drain: true}}, "b"},
		"one of two instances of a filter":    {place.Cluster{Namespace: "team-1", Filter: "b"}, []place.Instance{a, {Filter: "b", Namespaces: []string{"team-2"}}, {Filter: "b", Namespaces: []string{"team-1"}, Drain: true}}, "a"},
		"another filter":                      {place.Cluster{Filter: "mistyped"}, []place.Instance{a}, "mistyped"},
		"only one that is ending":             {place.Cluster{}, []place.Instance{ending}, ""},
		"an instance that ends":               {place.Cluster{Filter: "ending", Assigned: true}, []place.Instance{a, ending}, "a"},
		"it ends, and there is no other":      {place.Cluster{Filter: "ending", Assigned: true}, []place.Instance{ending}, "ending"},
		"it ends amid a rollout":              {place.Cluster{Filter: "ending", Assigned: true, Busy: true}, []place.Instance{a, ending}, "ending"},
	} {
		f := fleet{c.cluster}
		f.decide(t, c.instances, unlimited)
		if f[0].Filter != c.want {
			t.Errorf("%s: %q, not %q", name, f[0].Filter, c.want)
		}
	}
	pinned := newFleet(100)
	for i := range pinned {
		pinned[i].Filter, pinned[i].Assigned, pinned[i].Busy = "a", i < 20, i < 10
	}
	if moved := pinned.decide(t, named("a", "new"), unlimited); moved != 10 {
		t.Errorf("%d of ten Clusters moved that may", moved)
	}
}

// Few Clusters are as even as many: a difference of one is left, and no larger one.
func TestFewClustersAreEven(t *testing.T) {
	for size := 1; size <= 40; size++ {
		f := newFleet(size)
		f.decide(t, named("blue"), 0)
		f.decide(t, named("blue", "green"), size)
		loads := map[string]int{}
		for _, c := range f {
			loads[c.Filter]++
		}
		if difference := loads["blue"] - loads["green"]; difference < -1 || difference > 1 {
			t.Errorf("%d Clusters are shared as %v", size, loads)
		}
	}
}
