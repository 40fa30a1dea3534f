// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"
	"slices"
	"strings"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/gather"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/result"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// places are those of the wanted add-ons, as "stack/name", in their order. Each one comes after those that it depends on.
type places map[string]int

func (q Delivery) places() places {
	all := places{}
	for i := range q.Wanted {
		all[q.Wanted[i].Qualified()] = i
	}
	return all
}

// follows returns the places of what an add-on depends on. In a circle none comes to anything, and it holds up no others.
func (p places) follows(a *wanted.Addon) (before []int) {
	for _, d := range stack.QualifiedAll(a.Stack, a.DependsOn) {
		if at, isWanted := p[d]; isWanted && at < p[a.Qualified()] {
			before = append(before, at)
		}
	}
	return before
}

// missingDependency says that an installed add-on depends on one that the cluster isn't to have; "" if it doesn't.
func missingDependency(o *gather.Observed, a *wanted.Addon) string {
	for _, d := range a.DependsOn {
		name := stack.Qualified(a.Stack, d)
		if !wants(o, name) && !o.Absent[name] {
			return fmt.Sprintf("dependsOn: no AddonStack gives this cluster add-on %s, and the next change will wait for it. Add it, or take it out of dependsOn", name)
		}
	}
	return ""
}

// wants reports whether an add-on, as "stack/name", is wanted now.
func wants(o *gather.Observed, name string) bool {
	return slices.ContainsFunc(o.Wanted, func(a wanted.Addon) bool { return a.Qualified() == name })
}

// describeMissing says why a dependency isn't ready.
func describeMissing(o *gather.Observed, a *wanted.Addon, dependency string) string {
	wanted := stack.Qualified(a.Stack, dependency)
	if !wants(o, wanted) {
		return fmt.Sprintf("Waiting for add-on %s: this cluster is to have no such add-on. Add it, let its AddonStack select the Cluster, or take it out of dependsOn", wanted)
	}
	if cycle := cycleThrough(o, wanted); cycle != nil {
		return fmt.Sprintf("The add-ons depend on each other: %s. Take one of these dependencies out", strings.Join(cycle, " -> "))
	}
	return fmt.Sprintf("Waiting for add-on %s to be ready", dependency)
}

// cycleThrough returns add-ons that depend on each other with the given one, nil if there are none.
func cycleThrough(o *gather.Observed, wanted string) []string {
	dependencies := map[string][]string{}
	for i := range o.Wanted {
		a := &o.Wanted[i]
		dependencies[a.Qualified()] = stack.QualifiedAll(a.Stack, a.DependsOn)
	}
	return stack.CycleThrough(dependencies, wanted)
}

// MayTakeOver reports whether a wanted add-on may still take objects over from one that is leaving.
// An add-on that is refused because the other one has the object isn't waited for, once each object was tried.
func MayTakeOver(one result.Addon) bool {
	phase, reason := one.Status.Phase, one.Status.Reason
	switch {
	case wanted.IsInstalled(phase) && reason != reasons.Retrying:
		return false
	case reason == reasons.ReleaseTaken:
		return false // another one has the release, and counts itself
	case phase != addonsv1.AddonFailed:
		return true
	}
	isInTheWay := reason == object.ReasonImmutableField || reason == object.ReasonObjectRejected
	return !one.Applied && (!one.Tried || !isInTheWay)
}
