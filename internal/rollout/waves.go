// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"hash/fnv"
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// member is a cluster in its wave.
type member struct {
	*Cluster
	standing standing
}

// wave is a step of the rollout with its clusters.
type wave struct {
	Wave
	members []member
	count   Count
}

// waves puts each cluster into the first wave that takes it, and counts. It returns how many clusters are in flight, too.
// It has the decision made again when a cluster stands elsewhere by time alone.
func (in *Input) waves(d *Decision) (waves []wave, running int) {
	rest := make([]member, 0, len(in.Clusters))
	for i := range in.Clusters {
		c := &in.Clusters[i]
		stands, changes := in.standingOf(c)
		in.wake(d, changes)
		if stands == inFlight {
			running++
		}
		rest = append(rest, member{c, stands})
	}
	slices.SortFunc(rest, func(a, b member) int { return inOrder(a.Name, b.Name) })
	for i, step := range in.steps() {
		w := wave{Wave: step}
		takeIf := func(takes func(m member) bool) {
			rest = slices.DeleteFunc(rest, func(m member) bool {
				if !takes(m) {
					return false
				}
				w.members = append(w.members, m)
				return true
			})
		}
		takeIf(func(m member) bool {
			return step.takesRest() || step.Selector != nil && step.Selector.Matches(m.Labels) || i == 0 && m.needsRemedy()
		})
		if step.Size != nil {
			full := len(w.members) + atLeastOne(*step.Size, len(rest))
			takeIf(func(m member) bool { return len(w.members) < full && !in.cameAmid(m) })
		}
		w.count = in.countOf(step.Name, w.members)
		waves = append(waves, w)
	}
	return waves, running
}

// cameAmid reports whether a cluster came after the rollout began. Then it takes no other cluster's place in a wave of a
// size: the wave would begin again.
func (in *Input) cameAmid(m member) bool { return !in.Began.IsZero() && m.Joined.After(in.Began) }

// steps returns the waves of the strategy; for a known target the last one alone, with its limit of concurrency.
func (in *Input) steps() []Wave {
	if !in.Known {
		return in.Strategy.Waves
	}
	last := in.Strategy.Waves[len(in.Strategy.Waves)-1]
	return []Wave{{Name: last.Name, MaxConcurrent: last.MaxConcurrent}}
}

// needsRemedy reports whether a cluster failed at a revision that was never completed: the next one reaches it first.
func (m member) needsRemedy() bool { return m.Unfinished && m.isUnwell() }

func (m member) isUnwell() bool {
	return m.State == addonsv1.StackFailed || m.State == addonsv1.StackDegraded
}

// turns returns the clusters of a wave that haven't started: first those that aren't well.
func (w *wave) turns() []member {
	var unwell, well []member
	for _, m := range w.members {
		switch {
		case m.standing != waits:
		case m.isUnwell():
			unwell = append(unwell, m)
		default:
			well = append(well, m)
		}
	}
	return append(unwell, well...)
}

// has reports whether a cluster of the wave stands somewhere.
func (w *wave) has(anywhere ...standing) bool {
	return slices.ContainsFunc(w.members, func(m member) bool { return slices.Contains(anywhere, m.standing) })
}

func (in *Input) countOf(name string, members []member) Count {
	c := Count{Name: name, Total: len(members)}
	for _, m := range members {
		if m.Assigned == in.Target {
			c.Updated++
		}
		switch m.standing {
		case done:
			c.Done++
			if m.Since.After(c.ReadySince) {
				c.ReadySince = m.Since
			}
		case failed:
			c.Failed = append(c.Failed, m.Name)
		case away:
			c.Away = append(c.Away, m.Name)
		case waits, inFlight, broken:
		}
	}
	slices.Sort(c.Failed)
	slices.Sort(c.Away)
	return c
}

// inOrder compares two clusters by a place in a row that doesn't change when others come and leave.
func inOrder(a, b string) int { return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b)) }

func place(name string) uint64 {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(name)) // it never fails
	return sum.Sum64()
}

// atLeastOne scales a number or a percentage, rounded up.
func atLeastOne(limit intstr.IntOrString, total int) int { return max(scaled(limit, total, true), 1) }

// AtMost scales a number or a percentage, rounded down.
func AtMost(limit intstr.IntOrString, total int) int { return scaled(limit, total, false) }

func scaled(limit intstr.IntOrString, total int, roundUp bool) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(&limit, total, roundUp)
	if err != nil { // stored while no rule was asked
		return 0
	}
	return n
}
