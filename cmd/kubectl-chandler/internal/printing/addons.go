// SPDX-License-Identifier: Apache-2.0

package printing

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/summary"
)

// versions returns an add-on with its versions, those of most clusters first.
func (p *Printer) versions(a *summary.Addon) string {
	most := slices.SortedFunc(maps.Keys(a.Versions), func(x, y string) int {
		return cmp.Or(cmp.Compare(a.Versions[y], a.Versions[x]), cmp.Compare(x, y))
	})
	if len(most) == 0 {
		return a.Name + " -"
	}
	text := a.Name + " " + most[0]
	for i, other := range most[1:] {
		if i == few && !p.Wide {
			return text + " (and others)"
		}
		text += fmt.Sprintf(" (%s on %d)", other, a.Versions[other])
	}
	if a.Available != "" {
		text += " (" + a.Available + " is there, not taken)"
	}
	return clean(text)
}

// states returns on how many clusters an add-on is in each phase, and names those on which it isn't Ready.
func (p *Printer) states(a *summary.Addon) string {
	var states []string
	for _, phase := range slices.Backward(summary.Phases) {
		if names := a.Phases[phase]; len(names) > 0 {
			state := fmt.Sprintf("%d %s", len(names), phase)
			if phase != addonsv1.AddonReady {
				state += " (" + p.names(names) + ")"
			}
			states = append(states, state)
		}
	}
	return strings.Join(states, ", ")
}

// branch is an add-on in a tree, with the lines that lead to it.
type branch struct {
	*summary.Addon
	Lines string
}

// branches returns the add-ons of a stack that are below a parent, "" for none, each with those below it.
func branches(s *summary.Stack, parent, lines string) (all []branch) {
	var children []*summary.Addon
	for i := range s.Addons {
		if parentOf(s, &s.Addons[i]) == parent {
			children = append(children, &s.Addons[i])
		}
	}
	for i, a := range children {
		bar, next := "|- ", "|  "
		if i == len(children)-1 {
			bar, next = "`- ", "   "
		}
		all = append(append(all, branch{a, lines + bar}), branches(s, a.Name, lines+next)...)
	}
	return all
}

// parentOf returns the first add-on of the stack that one depends on, "" if there is none.
func parentOf(s *summary.Stack, a *summary.Addon) string {
	for _, on := range a.DependsOn {
		if slices.ContainsFunc(s.Addons, func(b summary.Addon) bool { return b.Name == on }) {
			return on
		}
	}
	return ""
}

// clusters returns how many clusters have any of the causes.
func clusters(causes []summary.Cause) int {
	names := sets.New[string]()
	for _, cause := range causes {
		for _, name := range cause.Clusters {
			names.Insert(cause.Namespace + "/" + name)
		}
	}
	return names.Len()
}
