// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
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

// QualifiedAll returns each entry of dependsOn as [Qualified] does.
func QualifiedAll(stack string, dependencies []string) []string {
	all := make([]string, 0, len(dependencies))
	for _, d := range dependencies {
		all = append(all, Qualified(stack, d))
	}
	return all
}

// isOfAnother reports whether an entry of dependsOn names its stack.
func isOfAnother(dependency string) bool { return strings.Contains(dependency, "/") }

// DependsOnOthers reports whether an add-on depends on one of another stack.
func DependsOnOthers(addons []addonsv1.Addon) bool {
	return slices.ContainsFunc(addons, func(a addonsv1.Addon) bool { return slices.ContainsFunc(a.DependsOn, isOfAnother) })
}

// CyclesAcross returns a problem of a stack if add-ons of it and of others depend on each other.
func CyclesAcross(name string, stacks map[string][]addonsv1.Addon) []Problem {
	path := field.NewPath("spec", "addons")
	if len(cycleWithin(stacks[name], path)) > 0 { // that one is told by itself
		return nil
	}
	dependencies := map[string][]string{}
	for each, addons := range stacks {
		for i := range addons {
			dependencies[Qualified(each, addons[i].Name)] = QualifiedAll(each, addons[i].DependsOn)
		}
	}
	return cycleIn(dependencies, stacks[name], path, func(addon string) string { return Qualified(name, addon) })
}

// cycleWithin returns a problem if add-ons of one stack, which are at a path, depend on each other.
func cycleWithin(addons []addonsv1.Addon, path *field.Path) []Problem {
	dependencies := map[string][]string{}
	for i := range addons {
		dependencies[addons[i].Name] = addons[i].DependsOn
	}
	return cycleIn(dependencies, addons, path, func(addon string) string { return addon })
}

// cycleIn returns a problem of the first of some add-ons that a cycle begins with. Dependencies have add-ons by the names
// that a function returns for them.
func cycleIn(
	dependencies map[string][]string, addons []addonsv1.Addon, path *field.Path, named func(addon string) string,
) []Problem {
	for i, a := range addons {
		if cycle := CycleThrough(dependencies, named(a.Name)); cycle != nil {
			text := fmt.Sprintf("the add-ons depend on each other: %s; take one of these dependencies out", strings.Join(cycle, " -> "))
			return []Problem{{addonsv1.DependencyCycleReason, field.Invalid(path.Index(i).Child("dependsOn"), a.DependsOn, text)}}
		}
	}
	return nil
}

// InOrder returns add-ons so that each one comes after those it depends on, and otherwise as they are
// listed. Add-ons of a cycle come last.
func InOrder[T any](addons []T, name func(*T) string, dependsOn func(*T) []string) []T {
	rest, unplaced := make([]*T, 0, len(addons)), sets.New[string]()
	for i := range addons {
		rest = append(rest, &addons[i])
		unplaced.Insert(name(&addons[i]))
	}
	ordered := make([]T, 0, len(addons))
	for len(rest) > 0 {
		// The entries of a cycle follow as they are listed.
		i := max(0, slices.IndexFunc(rest, func(a *T) bool { return !unplaced.HasAny(dependsOn(a)...) }))
		unplaced.Delete(name(rest[i]))
		ordered = append(ordered, *rest[i])
		rest = slices.Delete(rest, i, i+1)
	}
	return ordered
}

// CycleThrough returns the names along a cycle of dependencies that begins and ends with an
// add-on; nil if there is none.
func CycleThrough(dependencies map[string][]string, addon string) []string {
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
