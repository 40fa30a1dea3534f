// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"fmt"
	"slices"
	"strings"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// missingDependency says that an installed add-on depends on one that the cluster isn't to have; "" if it doesn't.
func (q *clusterRun) missingDependency(a *wanted.Addon) string {
	for _, d := range a.DependsOn {
		name := stack.Qualified(a.Stack, d)
		if !q.wants(name) && !q.absent[name] {
			return fmt.Sprintf("dependsOn: no AddonStack gives this cluster add-on %s, and the next change will wait for it. Add it, or take it out of dependsOn", name)
		}
	}
	return ""
}

// wants reports whether an add-on, as "stack/name", is wanted now.
func (q *clusterRun) wants(name string) bool {
	return slices.ContainsFunc(q.wanted, func(a wanted.Addon) bool { return a.Qualified() == name })
}

// describeMissing says why a dependency isn't ready.
func (q *clusterRun) describeMissing(a *wanted.Addon, dependency string) string {
	wanted := stack.Qualified(a.Stack, dependency)
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
		dependencies[a.Qualified()] = stack.QualifiedAll(a.Stack, a.DependsOn)
	}
	return stack.CycleThrough(dependencies, wanted)
}

// stayingDependent returns an installed add-on that stays and depends on the record's, as "stack/name": a wanted
// one, or one that is left as it is. It returns "" if there is none, or if the record's removal has begun.
func (q removal) stayingDependent(record deliver.Summary) string {
	if releases.IsRemoving(record) || q.absent[releases.Qualified(record)] {
		return ""
	}
	for i := range q.kept {
		s := &q.kept[i]
		if other := q.installed[deliver.Release{Namespace: s.Namespace, Name: s.Name}]; q.proofs.Prove(other) && releases.DependsOn(other.Stack, other.DependsOn, releases.Qualified(record)) {
			return releases.Qualified(other)
		}
	}
	for i := range q.wanted {
		a := &q.wanted[i]
		if _, installed := q.installed[a.Release()]; installed && releases.DependsOn(a.Stack, a.DependsOn, releases.Qualified(record)) {
			return a.Qualified()
		}
	}
	return ""
}

// mayTakeOver reports whether a wanted add-on may still take objects over from one that is leaving.
// An add-on that is refused because the other one has the object isn't waited for, once each object was tried.
func mayTakeOver(one addonResult) bool {
	phase, reason := one.status.Phase, one.status.Reason
	switch {
	case wanted.IsInstalled(phase) && reason != reasons.Retrying:
		return false
	case reason == reasons.ReleaseTaken:
		return false // another one has the release, and counts itself
	case phase != addonsv1.AddonFailed:
		return true
	}
	isInTheWay := reason == object.ReasonImmutableField || reason == object.ReasonObjectRejected
	return !one.applied && (!one.tried || !isInTheWay)
}
