// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Qualified returns an entry of dependsOn as "stack/name", given the stack that it is in.
func Qualified(stack, dependency string) string {
	if isOfAnother(dependency) {
		return dependency
	}
	return stack + "/" + dependency
}

// isOfAnother reports whether an entry of dependsOn names its stack.
func isOfAnother(dependency string) bool { return strings.Contains(dependency, "/") }

// DependsOnOthers reports whether an add-on depends on one of another stack.
func DependsOnOthers(addons []addonsv1.Addon) bool {
	return slices.ContainsFunc(addons, func(a addonsv1.Addon) bool { return slices.ContainsFunc(a.DependsOn, isOfAnother) })
}

// qualified returns the add-ons of a stack with names and dependencies as "stack/name", and
// nothing else.
func qualified(stack string, addons []addonsv1.Addon) []addonsv1.Addon {
	all := make([]addonsv1.Addon, 0, len(addons))
	for i := range addons {
		a := addonsv1.Addon{Name: Qualified(stack, addons[i].Name)}
		for _, d := range addons[i].DependsOn {
			a.DependsOn = append(a.DependsOn, Qualified(stack, d))
		}
		all = append(all, a)
	}
	return all
}

// CycleThrough returns add-ons of several stacks that depend on each other through the given one.
// Each is "stack/name". The given one comes first, and again at the end. Nil means none.
func CycleThrough(stacks map[string][]addonsv1.Addon, addon string) []string {
	dependencies := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(stacks)) {
		for _, a := range qualified(name, stacks[name]) {
			dependencies[a.Name] = a.DependsOn
		}
	}
	return cycleThrough(dependencies, addon)
}

// CyclesAcross returns a problem of a stack if add-ons of it and of others depend on each other.
func CyclesAcross(name string, stacks map[string][]addonsv1.Addon) []Problem {
	if findCycle(stacks[name]) != nil { // that one is told by itself
		return nil
	}
	for i, a := range stacks[name] {
		if cycle := CycleThrough(stacks, Qualified(name, a.Name)); cycle != nil {
			return []Problem{{addonsv1.DependencyCycleReason, field.Invalid(field.NewPath("spec", "addons").Index(i).Child("dependsOn"), a.DependsOn,
				fmt.Sprintf("the add-ons depend on each other: %s; take one of these dependencies out", strings.Join(cycle, " -> ")))}}
		}
	}
	return nil
}

// InOrderAcross returns the positions of add-ons of several stacks, given the stack of each, so
// that each one comes after those it depends on, and otherwise as they are listed.
func InOrderAcross(addons []addonsv1.Addon, stackOf func(i int) string) []int {
	at, all := map[string]int{}, make([]addonsv1.Addon, 0, len(addons))
	for i := range addons {
		each := qualified(stackOf(i), addons[i:i+1])[0]
		at[each.Name] = i
		all = append(all, each)
	}
	order := make([]int, 0, len(addons))
	for _, a := range InOrder(all) {
		order = append(order, at[a.Name])
	}
	return order
}

// InOrder returns the add-ons so that each one comes after those it depends on, and otherwise as they
// are listed. Add-ons of a cycle come last.
func InOrder(addons []addonsv1.Addon) []addonsv1.Addon {
	ordered := make([]addonsv1.Addon, 0, len(addons))
	placed := map[string]bool{}
	rest := slices.Clone(addons)
	for len(rest) > 0 {
		i := slices.IndexFunc(rest, func(a addonsv1.Addon) bool {
			return !slices.ContainsFunc(a.DependsOn, func(d string) bool { return !placed[d] && contains(rest, d) })
		})
		if i < 0 {
			return append(ordered, rest...)
		}
		placed[rest[i].Name] = true
		ordered = append(ordered, rest[i])
		rest = slices.Delete(rest, i, i+1)
	}
	return ordered
}

// findCycle returns the names along one cycle of dependencies within a stack, the first one
// again at the end; nil if there is none.
func findCycle(addons []addonsv1.Addon) []string {
	dependencies := map[string][]string{}
	for i := range addons {
		dependencies[addons[i].Name] = addons[i].DependsOn
	}
	for i := range addons {
		if cycle := cycleThrough(dependencies, addons[i].Name); cycle != nil {
			return cycle
		}
	}
	return nil
}

// cycleThrough returns the names along a cycle of dependencies that begins and ends with an
// add-on; nil if there is none.
func cycleThrough(dependencies map[string][]string, addon string) []string {
	visited := map[string]bool{}
	var visit func(path []string) []string
	visit = func(path []string) []string {
		for _, next := range dependencies[path[len(path)-1]] {
			if next == addon {
				return append(path, next)
			}
			if !visited[next] {
				visited[next] = true
				if cycle := visit(append(slices.Clip(path), next)); cycle != nil {
					return cycle
				}
			}
		}
		return nil
	}
	return visit([]string{addon})
}

func contains(addons []addonsv1.Addon, name string) bool {
	return slices.ContainsFunc(addons, func(a addonsv1.Addon) bool { return a.Name == name })
}
