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

// CycleThrough returns add-ons of several stacks that depend on each other, one of which is the
// given one: as "stack/name", that one first, and again at the end; nil if there are none.
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
