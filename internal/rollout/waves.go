// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"hash/fnv"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// wave is a step of the rollout with its clusters.
type wave struct {
	Wave
	members []Member
	count   Count
}

// waves puts each cluster into the first wave that takes it, and counts. It returns how many clusters are in flight, too.
// It has the decision made again when a cluster stands elsewhere by time alone.
func (in *Input) waves(d *Decision) (waves []wave, running int) {
	rest := make([]Member, 0, len(in.Clusters))
	for i := range in.Clusters {
		c := &in.Clusters[i]
		stands, changes := in.standingOf(c)
		in.wake(d, changes)
		if stands == InFlight {
			running++
		}
		d.Begins = d.Begins || c.Assigned == in.Target
		rest = append(rest, Member{c, stands})
	}
	slices.SortFunc(rest, func(a, b Member) int { return inOrder(a.Name, b.Name) })
	d.Last = map[string]uint64{}
	for i, step := range in.steps() {
		w := wave{Wave: step}
		takeIf := func(takes func(m Member) bool) {
			rest = slices.DeleteFunc(rest, func(m Member) bool {
				if !takes(m) {
					return false
				}
				w.members = append(w.members, m)
				return true
			})
		}
		takeIf(func(m Member) bool {
			return step.takesRest() || step.Selector != nil && step.Selector.Matches(m.Labels) || i == 0 && m.needsRemedy()
		})
		if step.Size != nil {
			last := in.lastOf(step, rest)
			takeIf(func(m Member) bool { return place(m.Name) <= last && !in.cameAmid(m) })
			d.Last[step.Name] = last
		}
		w.count = in.countOf(step.Name, w.members)
		waves = append(waves, w)
	}
	return waves, running
}

// lastOf returns the place of the last cluster that a wave of a size takes of those that no wave before it has, in order. A
// cluster that can show nothing, as nothing can be done there or it isn't well, is taken with the others, and not counted. One
// that wasn't seen yet may show something in a moment, so it counts: else a wave takes all that connect after its last one. Once the rollout has begun, it is as it was then: nobody takes the place of a cluster that is gone.
func (in *Input) lastOf(step Wave, rest []Member) (last uint64) {
	if last, known := in.Last[step.Name]; known || len(rest) == 0 {
		return last
	}
	size := in.ownPart(*step.Size, len(rest))
	if size == 0 {
		return 0 // other instances have the clusters of the wave
	}
	counted := 0
	for i, m := range rest {
		able := (m.Standing != Away || m.Unseen) && !m.isUnwell()
		if able {
			counted++
		}
		if able || i < size {
			last = place(m.Name)
		}
		if counted == size {
			break
		}
	}
	return last
}

// cameAmid reports whether a cluster came after the rollout began. A wave of a size doesn't take it: it would begin again.
func (in *Input) cameAmid(m Member) bool { return !in.Began.IsZero() && m.Joined.After(in.Began) }

// steps returns the waves of the strategy; the last one alone unless the target is staged.
func (in *Input) steps() []Wave {
	if in.Mode == Staged {
		return in.Strategy.Waves
	}
	last := in.Strategy.Waves[len(in.Strategy.Waves)-1]
	return []Wave{{Name: last.Name, MaxConcurrent: last.MaxConcurrent}}
}

// needsRemedy reports whether a cluster failed at a revision that wasn't completed: the next one reaches it first.
func (m Member) needsRemedy() bool { return m.Unfinished && m.isUnwell() }

func (m Member) isUnwell() bool {
	return m.State == addonsv1.StackFailed || m.State == addonsv1.StackDegraded
}

// turns returns the clusters of a wave that haven't started: first those that aren't well.
func (w *wave) turns() []Member {
	var unwell, well []Member
	for _, m := range w.members {
		switch {
		case m.Standing != Waits:
		case m.isUnwell():
			unwell = append(unwell, m)
		default:
			well = append(well, m)
		}
	}
	return append(unwell, well...)
}

// isWaited reports whether a cluster of the wave waits or is on its way, and holds the wave up.
func (in *Input) isWaited(w *wave) bool {
	return slices.ContainsFunc(in.holders(w.members), func(m Member) bool { return m.Standing == Waits || m.Standing == InFlight })
}

// holders returns the clusters that hold their wave up. Those that came amid do only if there is no other one.
func (in *Input) holders(members []Member) []Member {
	holders := slices.DeleteFunc(slices.Clone(members), in.cameAmid)
	if len(holders) == 0 {
		return members
	}
	return holders
}

func (in *Input) countOf(name string, members []Member) Count {
	c := Count{Name: name, Total: len(members)}
	for _, m := range members {
		if in.arrives(m.Cluster) {
			c.Updated++
		}
		switch m.Standing {
		case Done:
			c.Done++
		case Failed:
			c.Failed = append(c.Failed, m.Name)
		case Away:
			c.Away = append(c.Away, m.Name)
		case InFlight:
			if m.isFresh() && m.WasReady && m.isUnwell() {
				c.Unsure++
			}
		case Waits, Broken:
		}
	}
	c.ReadySince = readySince(in.holders(members))
	if c.ReadySince.IsZero() {
		c.ReadySince = readySince(members)
	}
	slices.Sort(c.Failed)
	slices.Sort(c.Away)
	return c
}

// readySince returns when the last one of the clusters that are done became ready, zero if none is done.
func readySince(members []Member) (last time.Time) {
	for _, m := range members {
		if m.Standing == Done && m.Since.After(last) {
			last = m.Since
		}
	}
	return last
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
