// SPDX-License-Identifier: Apache-2.0

package stack_test

import (
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

func TestInOrderAcrossStacks(t *testing.T) {
	order := func(stacks string, all []addonsv1.Addon) string {
		type of struct {
			stack string
			addonsv1.Addon
		}
		var listed []of
		for i, a := range all {
			listed = append(listed, of{stacks[i : i+1], a})
		}
		var names []string
		for _, a := range stack.InOrder(listed,
			func(a *of) string { return stack.Qualified(a.stack, a.Name) },
			func(a *of) []string { return stack.QualifiedAll(a.stack, a.DependsOn) }) {
			names = append(names, a.stack+"/"+a.Name)
		}
		return strings.Join(names, " ")
	}
	if got := order("aabbb", addons("x:b/y y x y:a/y z")); got != "a/y b/x b/y a/x b/z" {
		t.Error(got)
	}
	if got := order("aab", addons("x:b/x y x:a/x")); got != "a/y a/x b/x" {
		t.Errorf("those of a cycle come last: %s", got)
	}
}
