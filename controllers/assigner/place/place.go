// SPDX-License-Identifier: Apache-2.0

// Package place decides which instance a Cluster belongs to. It only computes: from Clusters and instances as they are, which labels
// are to be written next. What it decided before is in the labels alone.
package place

import (
	"cmp"
	"hash/fnv"
	"math"
	"slices"
)

// slack is how far from even the loads may be, as a part of the mean, before a Cluster moves for it.
const slack = 0.02

// Instance is one that has a watch filter, and works.
type Instance struct {
	// Filter is that of no other instance of one of its namespaces.
	Filter string
	// Namespaces is empty for all.
	Namespaces []string
	// Drain says that it gets no Cluster, and gives its own away.
	Drain bool
}

// has reports whether the namespace is one of the instance's.
func (i *Instance) has(namespace string) bool {
	return len(i.Namespaces) == 0 || slices.Contains(i.Namespaces, namespace)
}

// takes reports whether a Cluster of a namespace may be given to the instance.
func (i *Instance) takes(namespace string) bool { return !i.Drain && i.has(namespace) }

// Cluster is one of the namespaces whose Clusters are assigned.
type Cluster struct {
	Namespace, Name string
	// Filter is its label, "" without one.
	Filter string
	// Assigned says that the label was written for a decision of this package. One that a person wrote stays.
	Assigned bool
	// Busy is so of one that is being deleted, upgraded or rolled out to. It doesn't move.
	Busy bool
}

// Label is to be written to a Cluster.
type Label struct {
	Namespace, Name, Filter string
	// Move says that another instance has the Cluster now.
	Move bool
}

// Next returns the labels that are to be written now, of which so many move Clusters at most. Clusters without a label come first, then
// those of instances that are drained. An instance is chosen by rendezvous hashing among those with room, so the same Clusters
// come back to it when others come and go.
func Next(clusters []Cluster, instances []Instance, moves int) []Label {
	p := &placing{}
	for i := range instances {
		if instances[i].Filter != "" {
			p.homes = append(p.homes, &home{Instance: &instances[i]})
		}
	}
	slices.SortStableFunc(p.homes, func(a, b *home) int { return cmp.Compare(a.Filter, b.Filter) })
	sorted := slices.Clone(clusters)
	slices.SortFunc(sorted, func(a, b Cluster) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	var without []*Cluster
	placed := 0
	for i := range sorted {
		c := &sorted[i]
		at := slices.IndexFunc(p.homes, func(h *home) bool { return h.Filter == c.Filter && h.has(c.Namespace) })
		switch {
		case c.Filter == "":
			without = append(without, c)
		case at >= 0:
			p.homes[at].load++
			p.homes[at].of = append(p.homes[at].of, c)
			placed++
		}
	}
	p.mean = float64(len(without)+placed) / float64(max(1, len(p.staying())))
	for _, c := range without {
		if to := p.best(c); to != nil && !c.Busy {
			p.give(c, nil, to)
		}
	}
	p.empty(moves)
	p.level(moves)
	return p.labels
}

// placing is one decision under way.
type placing struct {
	homes  []*home
	mean   float64 // Clusters of an instance, if all have the same
	labels []Label
	moved  int
}

// home is an instance with its Clusters.
type home struct {
	*Instance
	load int
	of   []*Cluster // those that it had before
}

// staying returns the instances that aren't drained.
func (p *placing) staying() []*home {
	return slices.DeleteFunc(slices.Clone(p.homes), func(h *home) bool { return h.Drain })
}

// best returns the instance of the highest score among those with room, or that of the least load if none has; nil if none takes it.
func (p *placing) best(c *Cluster) *home {
	var best, least *home
	for _, at := range p.homes {
		if !at.takes(c.Namespace) || at.Filter == c.Filter {
			continue
		}
		if least == nil || at.load < least.load {
			least = at
		}
		if float64(at.load) < p.mean && (best == nil || score(c, at) > score(c, best)) {
			best = at
		}
	}
	return cmp.Or(best, least)
}

// give gives a Cluster to an instance. From is nil for a Cluster without a label.
func (p *placing) give(c *Cluster, from, to *home) {
	if from != nil {
		from.load--
		p.moved++
	}
	to.load++
	p.labels = append(p.labels, Label{c.Namespace, c.Name, to.Filter, from != nil})
}

// empty takes Clusters from instances that are drained, also those that people gave them: no instance would manage these.
func (p *placing) empty(moves int) {
	for _, from := range p.homes {
		for _, c := range from.of {
			if to := p.best(c); from.Drain && !c.Busy && to != nil && p.moved < moves {
				p.give(c, from, to)
			}
		}
	}
}

// level moves Clusters from the instance that has most to the one that has least, until all are near the mean.
func (p *placing) level(moves int) {
	high := int(max(math.Ceil(p.mean), math.Floor(p.mean*(1+slack))))
	low := int(min(math.Floor(p.mean), math.Ceil(p.mean*(1-slack))))
	for p.moved < moves {
		byLoad := p.staying()
		slices.SortStableFunc(byLoad, func(a, b *home) int { return a.load - b.load })
		if !p.shift(byLoad, high, low) {
			return
		}
	}
}

// shift moves one Cluster, and returns if it could.
func (p *placing) shift(byLoad []*home, high, low int) bool {
	for _, from := range slices.Backward(byLoad) {
		for _, to := range byLoad {
			if from.load-to.load < 2 || from.load <= high && to.load >= low {
				break
			}
			if at := willing(from, to); at >= 0 {
				c := from.of[at]
				from.of = slices.Delete(from.of, at, at+1)
				p.give(c, from, to)
				return true
			}
		}
	}
	return false
}

// willing returns which Cluster of an instance another one takes by the highest score, -1 for none.
func willing(from, to *home) int {
	best := -1
	for i, c := range from.of {
		if c.Assigned && !c.Busy && to.takes(c.Namespace) && (best < 0 || score(c, to) > score(from.of[best], to)) {
			best = i
		}
	}
	return best
}

// score returns how much a Cluster belongs to an instance, whatever others there are.
func score(c *Cluster, to *home) uint64 {
	h := fnv.New64a()
	for _, part := range []string{c.Namespace, c.Name, to.Filter} {
		_, _ = h.Write(append([]byte(part), 0)) // it never fails
	}
	x := h.Sum64() // whose high bits hardly depend on the last bytes
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	return x ^ x>>33
}
