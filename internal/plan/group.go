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
// cluster.
type Sum struct {
	clusters addonsv1.PlanClusters
	groups   map[[sha256.Size]byte]*group

	restarts, removed int32
}

// group are clusters to which the same happens.
type group struct {
	clusters int32
	names    []string           // the first ones
	sample   addonsv1.PlanGroup // of the first one
	digests  []string           // of the sample's fields, in their order
	varies   []bool             // whether a cluster has another digest
}

// Add adds a cluster.
func (s *Sum) Add(name string, c Cluster) {
	state := Same
	for i := range c.Addons {
		a := &c.Addons[i]
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
	*s.count(state)++
	sample, digests := shapeOf(c)
	s.join(name, sample, digests)
}

// AddUnknown adds a cluster of which nothing is known, and why: one that doesn't answer, or couldn't be checked.
func (s *Sum) AddUnknown(name string, silent bool, why string) {
	state, counted := addonsv1.PlanState(NotChecked), &s.clusters.NotChecked
	if silent {
		state, counted = unreachable, &s.clusters.Unreachable
	}
	*counted++
	s.join(name, addonsv1.PlanGroup{Addons: []addonsv1.PlanAddon{{State: state, Message: short(why, maxMessage)}}}, nil)
}

const unreachable addonsv1.PlanState = "Unreachable"

// join puts a cluster into the group of its shape.
func (s *Sum) join(name string, sample addonsv1.PlanGroup, digests []string) {
	key := keyOf(sample)
	g := s.groups[key]
	if g == nil {
		if s.groups == nil {
			s.groups = map[[sha256.Size]byte]*group{}
		}
		g = &group{digests: digests, varies: make([]bool, len(digests))}
		s.groups[key] = g
	}
	for i, digest := range digests {
		g.varies[i] = g.varies[i] || digest != g.digests[i]
	}
	g.clusters++
	at, _ := slices.BinarySearch(g.names, name)
	if at == 0 {
		g.sample = sample
	}
	g.names = slices.Insert(g.names, at, name)
	g.names = g.names[:min(len(g.names), maxExamples)]
}

// Clusters returns the counts up to now. Of total clusters, some may not have been added yet.
func (s *Sum) Clusters(total int) addonsv1.PlanClusters {
	counts := s.clusters
	counts.Total = int32(total)
	return counts
}

// Groups returns the groups, those of most clusters first.
func (s *Sum) Groups() []addonsv1.PlanGroup {
	all := make([]addonsv1.PlanGroup, 0, len(s.groups))
	for _, g := range s.groups {
		is := *g.sample.DeepCopy()
		is.Clusters, is.Examples = g.clusters, g.names
		varies := g.varies
		for i := range is.Changes {
			for j := range is.Changes[i].Fields {
				is.Changes[i].Fields[j].Varies, varies = varies[0], varies[1:]
			}
		}
		all = append(all, is)
	}
	slices.SortFunc(all, func(a, b addonsv1.PlanGroup) int {
		return cmp.Or(cmp.Compare(b.Clusters, a.Clusters), cmp.Compare(a.Examples[0], b.Examples[0]))
	})
	return all
}

// Into writes the sum into the status of a plan of so many clusters, and cuts that to its bound.
func (s *Sum) Into(status *addonsv1.AddonPlanStatus, total int) {
	status.Clusters, status.Restarts, status.Removed, status.Groups = s.Clusters(total), s.restarts, s.removed, s.Groups()
	Fit(status)
}

// count returns the number of clusters in a state.
func (s *Sum) count(of State) *int32 {
	switch of {
	case Same:
		return &s.clusters.Same
	case Changed:
		return &s.clusters.Changed
	case Held:
		return &s.clusters.Held
	case Refused:
		return &s.clusters.Refused
	default:
		return &s.clusters.NotChecked
	}
}

// states are all states, the worst one last.
var states = []State{Same, Held, Changed, NotChecked, Refused}

func worse(a, b State) State {
	return states[max(slices.Index(states, a), slices.Index(states, b), 0)]
}

// AddonOf returns an add-on on whose objects there are these changes. Its state is the worst one.
func AddonOf(changes []Change) Addon {
	a := Addon{State: Same, Changes: changes}
	a.State = a.worst()
	return a
}

// worst returns the state of the add-on, with that of its changes.
func (a *Addon) worst() State {
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
