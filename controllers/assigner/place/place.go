// SPDX-License-Identifier: Apache-2.0

// Package place decides which instance a Cluster belongs to. It only computes: from Clusters and instances as they are, which labels
// are to be written next. What it decided before is in the labels alone.
package place

import (
	"cmp"
	"hash/fnv"
	"maps"
	"math"
	"slices"
)

// slack is how far from even the loads may be, as a part of the mean, before a Cluster moves for it.
const slack = 0.02

// Instance is one that has a watch filter.
type Instance struct {
	// Filter is that of no other instance.
	Filter string
	// Namespaces is empty for all.
	Namespaces []string
	// Ending instances get no Cluster, and give theirs away.
	Ending bool
}

// takes reports whether a Cluster of a namespace may be given to the instance.
func (i *Instance) takes(namespace string) bool {
	return !i.Ending && (len(i.Namespaces) == 0 || slices.Contains(i.Namespaces, namespace))
}

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
// those of instances that are ending. An instance is chosen by rendezvous hashing among those with room, so the same Clusters
// come back to it when others come and go.
func Next(clusters []Cluster, instances []Instance, moves int) []Label {
	p := &placing{load: map[string]int{}, of: map[string][]*Cluster{}}
	for i := range instances {
		if at := &instances[i]; at.Filter != "" {
			p.instances = append(p.instances, at)
			p.load[at.Filter] = 0
		}
	}
	slices.SortFunc(p.instances, func(a, b *Instance) int { return cmp.Compare(a.Filter, b.Filter) })
	sorted := slices.Clone(clusters)
	slices.SortFunc(sorted, func(a, b Cluster) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	var without []*Cluster
	for i := range sorted {
		c := &sorted[i]
		_, known := p.load[c.Filter]
		switch {
		case c.Filter == "":
			without = append(without, c)
		case known:
			p.load[c.Filter]++
			p.of[c.Filter] = append(p.of[c.Filter], c)
		}
	}
	p.mean = float64(len(without)+sum(p.load)) / float64(max(1, p.staying()))
	for _, c := range without {
		if to := p.best(c); to != nil && !c.Busy {
			p.give(c, to, false)
		}
	}
	p.empty(moves)
	p.level(moves)
	return p.labels
}

// placing is one decision under way.
type placing struct {
	instances []*Instance
	mean      float64 // Clusters of an instance, if all have the same
	load      map[string]int
	of        map[string][]*Cluster // by filter; those that stay or may move
	labels    []Label
	moved     int
}

// staying returns how many instances aren't ending.
func (p *placing) staying() (n int) {
	for _, at := range p.instances {
		if !at.Ending {
			n++
		}
	}
	return n
}

// best returns the instance of the highest score among those with room, or that of the least load if none has; nil if none takes it.
func (p *placing) best(c *Cluster) *Instance {
	var best, least *Instance
	for _, at := range p.instances {
		if !at.takes(c.Namespace) || at.Filter == c.Filter {
			continue
		}
		if least == nil || p.load[at.Filter] < p.load[least.Filter] {
			least = at
		}
		if float64(p.load[at.Filter]) < p.mean && (best == nil || score(c, at) > score(c, best)) {
			best = at
		}
	}
	return cmp.Or(best, least)
}

func (p *placing) give(c *Cluster, to *Instance, move bool) {
	if move {
		p.load[c.Filter]--
		p.moved++
	}
	p.load[to.Filter]++
	p.labels = append(p.labels, Label{c.Namespace, c.Name, to.Filter, move})
}

// empty takes Clusters from instances that are ending, also those that people gave them: nobody would manage these.
func (p *placing) empty(moves int) {
	for _, from := range p.instances {
		for _, c := range p.of[from.Filter] {
			if to := p.best(c); from.Ending && !c.Busy && to != nil && p.moved < moves {
				p.give(c, to, true)
			}
		}
	}
}

// level moves Clusters from the instance that has most to the one that has least, until all are near the mean.
func (p *placing) level(moves int) {
	high, low := int(math.Ceil(p.mean*(1+slack))), int(math.Floor(p.mean*(1-slack)))
	for p.moved < moves {
		byLoad := slices.SortedFunc(slices.Values(p.instances), func(a, b *Instance) int { return p.load[a.Filter] - p.load[b.Filter] })
		byLoad = slices.DeleteFunc(byLoad, func(at *Instance) bool { return at.Ending })
		if !p.shift(byLoad, high, low) {
			return
		}
	}
}

// shift moves one Cluster, and returns if it could.
func (p *placing) shift(byLoad []*Instance, high, low int) bool {
	for _, from := range slices.Backward(byLoad) {
		for _, to := range byLoad {
			most, least := p.load[from.Filter], p.load[to.Filter]
			if most-least < 2 || most <= high && least >= low {
				break
			}
			if at := p.willing(from, to); at >= 0 {
				c := p.of[from.Filter][at]
				p.of[from.Filter] = slices.Delete(p.of[from.Filter], at, at+1)
				p.give(c, to, true)
				return true
			}
		}
	}
	return false
}

// willing returns which Cluster of an instance another one takes by the highest score, -1 for none.
func (p *placing) willing(from, to *Instance) int {
	best := -1
	for i, c := range p.of[from.Filter] {
		if c.Assigned && !c.Busy && to.takes(c.Namespace) && (best < 0 || score(c, to) > score(p.of[from.Filter][best], to)) {
			best = i
		}
	}
	return best
}

// score returns how much a Cluster belongs to an instance, whatever others there are.
func score(c *Cluster, to *Instance) uint64 {
	h := fnv.New64a()
	for _, part := range []string{c.Namespace, c.Name, to.Filter} {
		_, _ = h.Write(append([]byte(part), 0)) // it never fails
	}
	x := h.Sum64() // whose high bits hardly depend on the last bytes
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	return x ^ x>>33
}

func sum(of map[string]int) (total int) {
	for n := range maps.Values(of) {
		total += n
	}
	return total
}
