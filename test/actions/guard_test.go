// SPDX-License-Identifier: Apache-2.0

package actions

import "time"

// window is how long a removal counts, a little less than Chandler says: it may see changes late.
const window = 9 * time.Minute

// guard counts the clusters from which stacks lost something that nobody allowed.
type guard struct {
	losses map[int][]loss // by stack
}

type loss struct {
	cluster int
	since   time.Time
	epochs  [2]int
}

// judge counts a loss, and expects that no more clusters have some than removalLimit allows.
func (g *guard) judge(j *judge, m *model, k int, at time.Time) {
	j.t.Helper()
	is := m.shares[share{j.cluster, k}]
	if g.losses == nil {
		g.losses = map[int][]loss{}
	}
	g.losses[is.stack] = append(g.losses[is.stack], loss{cluster: j.cluster, since: is.since, epochs: m.epochs(j.cluster)})
	lost := map[int]bool{}
	for _, l := range g.losses[is.stack] {
		if is.since.Sub(l.since).Abs() < window && l.epochs == m.epochs(l.cluster) {
			lost[l.cluster] = true
		}
	}
	if most := max(len(m.clusters)/10, 1); len(lost) > most {
		j.t.Errorf("%s lost %s at %s, which should have been held: %s lost something on %d clusters (%+v), and %d may",
			clusterName(j.cluster), componentName(k), at.UTC().Format("15:04:05.000"), stackName(is.stack), len(lost), g.losses[is.stack], most)
	}
}

// epochs tell which removals Chandler may have forgotten.
func (m *model) epochs(c int) [2]int { return [2]int{m.epoch, m.clusters[c].epoch} }
