// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

func names(addons []addonsv1.Addon) []string {
	var names []string
	for _, a := range addons {
		names = append(names, a.Name)
	}
	return names
}

func inOrder(addons []addonsv1.Addon) []addonsv1.Addon {
	return InOrder(addons, func(a *addonsv1.Addon) string { return a.Name }, func(a *addonsv1.Addon) []string { return a.DependsOn })
}

func TestInOrder(t *testing.T) {
	cases := map[string]struct{ addons, want []addonsv1.Addon }{
		"what depends on nothing stays as listed": {
			addons: []addonsv1.Addon{{Name: "b"}, {Name: "a"}},
			want:   []addonsv1.Addon{{Name: "b"}, {Name: "a"}},
		},
		"a dependency comes first": {
			addons: []addonsv1.Addon{{Name: "a", DependsOn: []string{"c"}}, {Name: "b"}, {Name: "c"}},
			want:   []addonsv1.Addon{{Name: "b"}, {Name: "c"}, {Name: "a"}},
		},
		"an unknown dependency holds nothing up": {
			addons: []addonsv1.Addon{{Name: "a", DependsOn: []string{"ghost"}}},
			want:   []addonsv1.Addon{{Name: "a"}},
		},
		"a cycle comes last": {
			addons: []addonsv1.Addon{{Name: "a", DependsOn: []string{"b"}}, {Name: "b", DependsOn: []string{"a"}}, {Name: "c"}},
			want:   []addonsv1.Addon{{Name: "c"}, {Name: "a"}, {Name: "b"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := names(inOrder(tc.addons)); !slices.Equal(got, names(tc.want)) {
				t.Errorf("InOrder() = %v, want %v", got, names(tc.want))
			}
		})
	}
}

// Whatever the graph: nothing is lost, what has no cycle comes after its
// dependencies, and cycleWithin finds a cycle if and only if there is one.
func TestOrderOfRandomGraphs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 2000 {
		addons := make([]addonsv1.Addon, random.IntN(9))
		for i := range addons {
			addons[i].Name = fmt.Sprint(i)
			for j := range addons {
				if i != j && random.IntN(5) == 0 {
					addons[i].DependsOn = append(addons[i].DependsOn, fmt.Sprint(j))
				}
			}
		}
		ordered := inOrder(addons)
		if len(ordered) != len(addons) {
			t.Fatalf("round %d: %d of %d add-ons are left", round, len(ordered), len(addons))
		}
		position := map[string]int{}
		for i, a := range ordered {
			position[a.Name] = i
		}
		inOrder := true
		for _, a := range ordered {
			for _, d := range a.DependsOn {
				inOrder = inOrder && position[d] < position[a.Name]
			}
		}
		dependencies := map[string][]string{}
		for _, a := range addons {
			dependencies[a.Name] = a.DependsOn
		}
		hasCycle := false
		for _, a := range addons {
			if cycle := CycleThrough(dependencies, a.Name); cycle != nil {
				hasCycle = true
				if cycle[0] != a.Name || cycle[len(cycle)-1] != a.Name {
					t.Fatalf("round %d: cycle %v doesn't close at %s", round, cycle, a.Name)
				}
			}
		}
		if found := cycleWithin(addons, field.NewPath("addons")); len(found) > 0 != hasCycle || hasCycle == inOrder {
			t.Fatalf("round %d: %v, a cycle: %t, in order: %t, of %v", round, found, hasCycle, inOrder, addons)
		}
	}
}
