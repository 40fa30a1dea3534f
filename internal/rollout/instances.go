// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Limits and sizes count over all instances that share a stack. Each one notes on the revision how many of its clusters are on
// their way, before these start. The note is a write over the revision as the decision saw it, so that no two instances take the
// same place.

// Share counts the clusters of an instance in a wave.
type Share struct {
	Total  int `json:"total"`
	Failed int `json:"failed,omitempty"`
}

// Elsewhere is how far the clusters of other instances are.
type Elsewhere struct {
	// OnTheWay are clusters that hold a place of maxConcurrent, the last one until Until.
	OnTheWay int
	Until    time.Time
	Waves    map[string]Share
}

// elsewhere sums up what the other instances have noted.
func (in *Input) elsewhere(attempt Attempt) Elsewhere {
	sum := Elsewhere{Waves: map[string]Share{}}
	for _, other := range in.Others {
		is := attempt.Instances[other.WatchFilter]
		if in.Now.Before(is.Until) {
			sum.OnTheWay += is.OnTheWay
			if sum.Until.IsZero() || is.Until.Before(sum.Until) {
				sum.Until = is.Until
			}
		}
		for wave, has := range is.Waves {
			all := sum.Waves[wave]
			sum.Waves[wave] = Share{all.Total + has.Total, all.Failed + has.Failed}
		}
	}
	return sum
}

// total returns how many clusters a wave has, of all instances.
func (in *Input) total(c Count) int { return c.Total + in.Elsewhere.Waves[c.Name].Total }

// failed returns how many clusters of a wave failed, of all instances.
func (in *Input) failed(c Count) int { return len(c.Failed) + in.Elsewhere.Waves[c.Name].Failed }

// tell has a decision say what other instances have to know.
func (in *Input) tell(d *Decision, running int) {
	if len(in.Others) == 0 {
		return
	}
	in.wake(d, in.Elsewhere.Until)
	d.Own = &Progress{OnTheWay: running + len(d.Start), Until: in.Now.Add(in.Strategy.ReadyWithin + in.Strategy.MinReady), Waves: map[string]Share{}}
	for _, c := range d.Waves {
		d.Own.Waves[c.Name] = Share{c.Total, len(c.Failed)}
	}
}

// tell takes over what a decision says for other instances. The time is a later one only if clusters start, else each decision
// would be another write.
func (p *Progress) tell(d Decision) {
	switch {
	case d.Own == nil:
		return
	case d.Own.OnTheWay == 0:
		p.Until = time.Time{}
	case p.Until.IsZero() || len(d.Start) > 0:
		p.Until = d.Own.Until.UTC().Truncate(time.Second)
	}
	p.OnTheWay, p.Waves = d.Own.OnTheWay, d.Own.Waves
}

// ownPart returns how many clusters a wave of a size takes of this instance's, of so many. The size is divided by how many clusters
// each instance has; what is left over after rounding is for those that lose most by it, in an order that is another one for each
// target.
func (in *Input) ownPart(size intstr.IntOrString, own int) int {
	type part struct {
		filter     string
		rest, turn uint64
		is         int
	}
	all := own
	for _, other := range in.Others {
		all += clustersOf(other)
	}
	whole := atLeastOne(size, all)
	if all == own {
		return whole
	}
	left := whole
	partOf := func(filter string, has int) part {
		p := part{filter, uint64(whole * has % all), place(in.Target + "/" + filter), whole * has / all}
		left -= p.is
		return p
	}
	parts := []part{partOf(in.WatchFilter, own)}
	for _, other := range in.Others {
		parts = append(parts, partOf(other.WatchFilter, clustersOf(other)))
	}
	slices.SortFunc(parts, func(a, b part) int { return cmp.Or(cmp.Compare(b.rest, a.rest), cmp.Compare(a.turn, b.turn)) })
	for i := range parts {
		if i < left {
			parts[i].is++
		}
		if parts[i].filter == in.WatchFilter {
			return parts[i].is
		}
	}
	return 0
}

func clustersOf(instance addonsv1.StackInstance) int {
	if instance.Clusters == nil {
		return 0
	}
	return int(instance.Clusters.Total)
}
