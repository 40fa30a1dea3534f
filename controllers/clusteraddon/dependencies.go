// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cluster-chandler/chandler/internal/stack"
)

// missingDependency says that an installed add-on depends on one that the cluster isn't to have; "" if it doesn't.
func (q *clusterRun) missingDependency(a *addon) string {
	for _, d := range a.DependsOn {
		name := stack.Qualified(a.stack, d)
		if !q.wants(name) && !q.absent[name] {
			return fmt.Sprintf("dependsOn: no AddonStack gives this cluster add-on %s, and the next change will wait for it. Add it, or take it out of dependsOn", name)
		}
	}
	return ""
}

// wants reports whether an add-on, as "stack/name", is wanted now.
func (q *clusterRun) wants(name string) bool {
	return slices.ContainsFunc(q.wanted, func(a addon) bool { return stack.Qualified(a.stack, a.Name) == name })
}

// describeMissing says why a dependency isn't ready.
func (q *clusterRun) describeMissing(a *addon, dependency string) string {
	wanted := stack.Qualified(a.stack, dependency)
	if !q.wants(wanted) {
		return fmt.Sprintf("Waiting for add-on %s: this cluster is to have no such add-on. Add it, let its AddonStack select the Cluster, or take it out of dependsOn", wanted)
	}
	if cycle := q.cycleThrough(wanted); cycle != nil {
		return fmt.Sprintf("The add-ons depend on each other: %s. Take one of these dependencies out", strings.Join(cycle, " -> "))
	}
	return fmt.Sprintf("Waiting for add-on %s to be ready", dependency)
}

// cycleThrough returns add-ons that depend on each other with the given one, nil if there are none.
func (q *clusterRun) cycleThrough(wanted string) []string {
	dependencies := map[string][]string{}
	for i := range q.wanted {
		a := &q.wanted[i]
		dependencies[stack.Qualified(a.stack, a.Name)] = stack.QualifiedAll(a.stack, a.DependsOn)
	}
	return stack.CycleThrough(dependencies, wanted)
}
