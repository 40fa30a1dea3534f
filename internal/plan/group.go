// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"crypto/sha256"
	"slices"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// maxExamples is how many clusters of a group are named (groups[].examples, MaxItems).
const maxExamples = 5

// Sum puts together what becomes of clusters, whatever their order. It keeps no object: of each group, it has the changes of one
// cluster. The zero value is that of none.
type Sum struct {
	counts map[addonsv1.PlanState]int32
	groups map[[sha256.Size]byte]*group

	restarts, removed int32
}

// group are clusters to which the same happens.
type group struct {
	names   []string
	sample  addonsv1.PlanGroup // of the first one by name
	digests []uint64           // of a sample's fields, in their order
	varies  []bool             // whether a cluster has another digest
}

// Add adds a cluster.
func (s *Sum) Add(name string, addons []Addon) {
	state := Same
	for i := range addons {
		a := &addons[i]
		a.State = a.worst()
		state = worse(state, a.State)
		for _, change := range a.Changes {
			if change.Restarts {
				s.restarts++
			}
			if change.Action == Delete {
				s.removed++
			}
		}
	}
	sample, digests, key := shapeOf(addons)
	if s.groups == nil {
		s.counts, s.groups = map[addonsv1.PlanState]int32{}, map[[sha256.Size]byte]*group{}
	}
	s.counts[state]++
	g := s.groups[key]
	if g == nil {
		g = &group{digests: digests, varies: make([]bool, len(digests))}
		s.groups[key] = g
	}
	for i, digest := range digests {
		g.varies[i] = g.varies[i] || digest != g.digests[i]
	}
	if g.names = append(g.names, name); name == slices.Min(g.names) {
		g.sample = sample
	}
}

// Clusters returns the counts up to now. Of total clusters, some may not have been added yet.
func (s *Sum) Clusters(total int) addonsv1.PlanClusters {
	n := s.counts
	return addonsv1.PlanClusters{
		Total: int32(total), Same: n[Same], Changed: n[Changed], Held: n[Held], Refused: n[Refused], NotChecked: n[NotChecked], Unreachable: n[Unreachable],
	}
}

// Into writes the sum into the status of a plan of so many clusters, the groups of most clusters first, and cuts that to its bound.
func (s *Sum) Into(status *addonsv1.AddonPlanStatus, total int) {
	status.Clusters, status.Restarts, status.Removed, status.Groups = s.Clusters(total), s.restarts, s.removed, nil
	for _, g := range s.groups {
		is := *g.sample.DeepCopy()
		is.Clusters, is.Examples = int32(len(g.names)), slices.Sorted(slices.Values(g.names))
		is.Examples = is.Examples[:min(len(is.Examples), maxExamples)]
		varies := g.varies
		for i := range is.Changes {
			for j := range is.Changes[i].Fields {
				is.Changes[i].Fields[j].Varies, varies = varies[0], varies[1:]
			}
		}
		status.Groups = append(status.Groups, is)
	}
	slices.SortFunc(status.Groups, func(a, b addonsv1.PlanGroup) int {
		return cmp.Or(cmp.Compare(b.Clusters, a.Clusters), cmp.Compare(a.Examples[0], b.Examples[0]))
	})
	Fit(status)
}

// states are all states, the worst one last.
var states = []addonsv1.PlanState{Same, Held, Changed, NotChecked, Refused, Unreachable}

func worse(a, b addonsv1.PlanState) addonsv1.PlanState {
	return states[max(slices.Index(states, a), slices.Index(states, b), 0)]
}

// AddonOf returns an add-on on whose objects there are these changes. Its state is the worst one.
func AddonOf(changes []Change) Addon {
	a := Addon{PlanAddon: addonsv1.PlanAddon{State: Same}, Changes: changes}
	a.State = a.worst()
	return a
}

// worst returns the state of the add-on, with that of its changes.
func (a *Addon) worst() addonsv1.PlanState {
	state := a.State
	for _, c := range a.Changes {
		switch {
		case c.Action == Refuse:
			state = worse(state, Refused)
		case c.Action == Unknown:
			state = worse(state, NotChecked)
		case state == Same:
			state = Changed
		}
	}
	return state
}
