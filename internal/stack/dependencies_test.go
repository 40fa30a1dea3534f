// SPDX-License-Identifier: Apache-2.0

package stack_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// addons reads "name:dependency,dependency name ...".
func addons(text string) []addonsv1.Addon {
	var all []addonsv1.Addon
	for each := range strings.FieldsSeq(text) {
		name, dependencies, _ := strings.Cut(each, ":")
		a := addonsv1.Addon{Name: name}
		if dependencies != "" {
			a.DependsOn = strings.Split(dependencies, ",")
		}
		all = append(all, a)
	}
	return all
}

func TestDependenciesAcrossStacks(t *testing.T) {
	for title, tc := range map[string]struct {
		stacks map[string][]addonsv1.Addon
		cycle  string // through an add-on of stack a
	}{
		"none":                  {map[string][]addonsv1.Addon{"a": addons("x y:x"), "b": addons("x y:x")}, ""},
		"one way":               {map[string][]addonsv1.Addon{"a": addons("x:b/x"), "b": addons("x y:x")}, ""},
		"to what isn't there":   {map[string][]addonsv1.Addon{"a": addons("x:c/x,b/none"), "b": addons("x")}, ""},
		"both ways, not around": {map[string][]addonsv1.Addon{"a": addons("x:b/x y"), "b": addons("x:a/y")}, ""},
		"around":                {map[string][]addonsv1.Addon{"a": addons("x:b/x"), "b": addons("x:a/x")}, "a/x -> b/x -> a/x"},
		"around, by a name of the stack": {map[string][]addonsv1.Addon{"a": addons("x:b/x y:x"), "b": addons("x:y y:a/y")},
			"a/x -> b/x -> b/y -> a/y -> a/x"},
		"its own name": {map[string][]addonsv1.Addon{"a": addons("x:a/x")}, "a/x -> a/x"},
		"of others":    {map[string][]addonsv1.Addon{"a": addons("z:b/x"), "b": addons("x:c/x"), "c": addons("x:b/x")}, ""},
		"of others beside ours": {map[string][]addonsv1.Addon{"a": addons("z:b/x,d/y"), "b": addons("x:c/x"), "c": addons("x:b/x"), "d": addons("y:a/z")},
			"a/z -> d/y -> a/z"},
		"within the stack": {map[string][]addonsv1.Addon{"a": addons("x:y y:x z:b/x"), "b": addons("x")}, ""},
	} {
		t.Run(title, func(t *testing.T) {
			problems := stack.CyclesAcross("a", tc.stacks)
			if tc.cycle == "" && len(problems) == 0 {
				return
			}
			if len(problems) != 1 || problems[0].Reason != addonsv1.DependencyCycleReason || !strings.Contains(problems[0].Error.Detail, tc.cycle) {
				t.Errorf("%v", problems)
			}
		})
	}
}

// inOrder returns add-ons in order, as "stack/name". The names of their stacks are single letters.
func inOrder(stacks string, all []addonsv1.Addon) (names []string) {
	type of struct {
		stack string
		addonsv1.Addon
	}
	var listed []of
	for i, a := range all {
		listed = append(listed, of{stacks[i : i+1], a})
	}
	for _, a := range stack.InOrder(listed,
		func(a *of) string { return stack.Qualified(a.stack, a.Name) },
		func(a *of) []string { return stack.QualifiedAll(a.stack, a.DependsOn) }) {
		names = append(names, a.stack+"/"+a.Name)
	}
	return names
}

func TestInOrder(t *testing.T) {
	for name, tc := range map[string]struct{ stacks, addons, want string }{
		"what depends on nothing stays as listed": {"aa", "y x", "a/y a/x"},
		"a dependency comes first":                {"aaa", "x:z y z", "a/y a/z a/x"},
		"an unknown dependency holds nothing up":  {"a", "x:ghost", "a/x"},
		"a cycle comes last":                      {"aaa", "x:y y:x z", "a/z a/x a/y"},
		"across stacks":                           {"aabbb", "x:b/y y x y:a/y z", "a/y b/x b/y a/x b/z"},
		"a cycle across stacks":                   {"aab", "x:b/x y x:a/x", "a/y a/x b/x"},
	} {
		if got := strings.Join(inOrder(tc.stacks, addons(tc.addons)), " "); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// Whatever the graph: nothing is lost, what has no cycle comes after its
// dependencies, and a spec with it is invalid if and only if there is a cycle.
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
		ordered := inOrder(strings.Repeat("a", len(addons)), addons)
		if len(ordered) != len(addons) {
			t.Fatalf("round %d: %d of %d add-ons are left", round, len(ordered), len(addons))
		}
		position := map[string]int{}
		for i, name := range ordered {
			position[strings.TrimPrefix(name, "a/")] = i
		}
		comesAfter := true
		for _, a := range addons {
			for _, d := range a.DependsOn {
				comesAfter = comesAfter && position[d] < position[a.Name]
			}
		}
		dependencies := map[string][]string{}
		for _, a := range addons {
			dependencies[a.Name] = a.DependsOn
		}
		hasCycle := false
		for _, a := range addons {
			if cycle := stack.CycleThrough(dependencies, a.Name); cycle != nil {
				hasCycle = true
				if cycle[0] != a.Name || cycle[len(cycle)-1] != a.Name {
					t.Fatalf("round %d: cycle %v doesn't close at %s", round, cycle, a.Name)
				}
			}
		}
		if found := stack.Validate(&addonsv1.AddonStackSpec{Addons: addons}); len(found) > 0 != hasCycle || hasCycle == comesAfter {
			t.Fatalf("round %d: %v, a cycle: %t, in order: %t, of %v", round, found, hasCycle, comesAfter, addons)
		}
	}
}
