// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Of the random fleet: each namespace has this many of each. Clusters of one server
// have add-ons in different halves, so that no two of them want one release.
const (
	slots   = 6
	servers = 3
	stacks  = 6
	secrets = 2
)

// restsFor is how many steps a namespace takes before a Cluster that is gone comes
// again: its workload cluster is wiped in between.
const restsFor = 25

// model is what users want, and how they came to want it. It is made from a seed
// alone, before anything runs.
type model struct {
	random     *rand.Rand
	namespaces []*namespaceModel
	steps      []step
}

// step is one event: what a user does to one object.
type step struct {
	object string // namespace/name; steps of one object are in order
	what   string
	do     func(*user) error
}

type namespaceModel struct {
	name    string
	weight  int
	filters []string // that objects have here; "" is no label
	served  []string // those of these that an instance serves
	common  []string // filters that stacks have besides, and that all instances serve
	steps   int

	clusters [slots]clusterModel
	stacks   [stacks]stackModel
	secrets  [secrets]string
}

type clusterModel struct {
	exists  bool
	filter  string
	tier    string
	paused  bool
	goneFor int // at which step of the namespace it was deleted
}

type stackModel struct {
	exists bool
	filter string
	tier   string // that it selects, "" for all
	text   string
	secret int  // that it reads, -1 for none
	second bool // has a second add-on
}

var tiers = []string{"gold", "silver"}

func newModel(seed uint64, namespaces ...*namespaceModel) *model {
	m := &model{random: rand.New(rand.NewPCG(seed, 0)), namespaces: namespaces}
	for _, n := range namespaces {
		for i := range n.secrets {
			m.changeSecret(n, i)
		}
		for i := range n.clusters {
			n.clusters[i].goneFor = -restsFor
			m.createCluster(n, i)
		}
		for i := range n.stacks {
			m.createStack(n, i)
		}
	}
	return m
}

// run makes so many steps.
func (m *model) run(count int) {
	var turns []*namespaceModel
	for _, n := range m.namespaces {
		for range n.weight {
			turns = append(turns, n)
		}
	}
	for until := len(m.steps) + count; len(m.steps) < until; {
		m.next(turns[m.random.IntN(len(turns))])
	}
}

// next makes one step in the namespace: none if it can't be done, two if a Cluster moves.
func (m *model) next(n *namespaceModel) {
	switch dice := m.random.IntN(100); {
	case dice < 61:
		m.nextOfCluster(n, m.random.IntN(slots), dice)
	case dice < 92:
		m.nextOfStack(n, m.random.IntN(stacks), dice)
	default:
		m.changeSecret(n, m.random.IntN(secrets))
	}
}

func (m *model) nextOfCluster(n *namespaceModel, i, dice int) {
	c := &n.clusters[i]
	if !c.exists {
		m.createCluster(n, i)
		return
	}
	switch {
	case dice < 38:
		m.relabelCluster(n, i, m.other(n.filters, c.filter))
	case dice < 46:
		m.retier(n, i)
	case dice < 52:
		m.pause(n, i, !c.paused)
	case dice < 57:
		m.deleteCluster(n, i)
	default:
		if to := m.namespaces[m.random.IntN(len(m.namespaces))]; to != n && m.free(to, i) {
			m.deleteCluster(n, i)
			m.createCluster(to, i)
		}
	}
}

func (m *model) nextOfStack(n *namespaceModel, i, dice int) {
	s := &n.stacks[i]
	switch {
	case !s.exists:
		m.createStack(n, i)
	case dice < 74:
		m.changeStack(n, i)
	case dice < 88:
		m.relabelStack(n, i, m.other(n.stackFilters(), s.filter))
	default:
		m.deleteStack(n, i)
	}
}

// end makes all Clusters workable and has every instance look at each once more:
// what depends on the order in which instances saw things is settled by that.
func (m *model) end() {
	for _, n := range m.namespaces {
		for i := range n.clusters {
			if n.clusters[i].exists {
				m.pause(n, i, false)
				m.add(n, clusterName(i), "touch", func(u *user) error {
					return u.label(clusterNamed(n.name, clusterName(i)), "touched", "yes")
				})
			}
		}
	}
}

func (m *model) add(n *namespaceModel, object, what string, do func(*user) error) {
	n.steps++
	m.steps = append(m.steps, step{object: n.name + "/" + object, what: what, do: do})
}

func (m *model) free(n *namespaceModel, i int) bool {
	c := &n.clusters[i]
	return !c.exists && n.steps-c.goneFor >= restsFor
}

func (m *model) createCluster(n *namespaceModel, i int) {
	if !m.free(n, i) {
		return
	}
	c := clusterModel{exists: true, filter: m.any(n.filters), tier: m.any(tiers)}
	n.clusters[i] = c
	m.add(n, clusterName(i), fmt.Sprintf("create %+v", c), func(u *user) error { return u.createCluster(n.name, i, c) })
}

func (m *model) deleteCluster(n *namespaceModel, i int) {
	n.clusters[i] = clusterModel{goneFor: n.steps}
	m.add(n, clusterName(i), "delete", func(u *user) error { return u.deleteCluster(n.name, i) })
}

func (m *model) relabelCluster(n *namespaceModel, i int, filter string) {
	n.clusters[i].filter = filter
	m.add(n, clusterName(i), fmt.Sprintf("relabel to %q", filter), func(u *user) error {
		return u.label(clusterNamed(n.name, clusterName(i)), clusterv1.WatchLabel, filter)
	})
}

func (m *model) retier(n *namespaceModel, i int) {
	tier := m.other(tiers, n.clusters[i].tier)
	n.clusters[i].tier = tier
	m.add(n, clusterName(i), "make it "+tier, func(u *user) error {
		return u.label(clusterNamed(n.name, clusterName(i)), "tier", tier)
	})
}

func (m *model) pause(n *namespaceModel, i int, paused bool) {
	n.clusters[i].paused = paused
	m.add(n, clusterName(i), fmt.Sprintf("pause: %t", paused), func(u *user) error {
		return u.patch(clusterNamed(n.name, clusterName(i)), map[string]any{"spec": map[string]any{"paused": paused}})
	})
}

func (m *model) createStack(n *namespaceModel, s int) {
	stack := m.randomStack()
	stack.filter = m.any(n.stackFilters())
	n.stacks[s] = stack
	m.add(n, stackName(s), fmt.Sprintf("create %+v", stack), func(u *user) error { return u.createStack(n.name, s, stack) })
}

func (m *model) changeStack(n *namespaceModel, s int) {
	stack := m.randomStack()
	stack.filter = n.stacks[s].filter
	n.stacks[s] = stack
	m.add(n, stackName(s), fmt.Sprintf("change to %+v", stack), func(u *user) error { return u.changeStack(n.name, s, stack) })
}

func (m *model) relabelStack(n *namespaceModel, s int, filter string) {
	n.stacks[s].filter = filter
	m.add(n, stackName(s), fmt.Sprintf("relabel to %q", filter), func(u *user) error {
		return u.label(stackNamed(n.name, stackName(s), nil), clusterv1.WatchLabel, filter)
	})
}

func (m *model) deleteStack(n *namespaceModel, s int) {
	n.stacks[s] = stackModel{}
	m.add(n, stackName(s), "delete", func(u *user) error { return u.remove(stackNamed(n.name, stackName(s), nil)) })
}

func (m *model) changeSecret(n *namespaceModel, v int) {
	text := m.text()
	n.secrets[v] = text
	m.add(n, secretName(v), "change to "+text, func(u *user) error { return u.writeSecret(n.name, v, text) })
}

func (m *model) randomStack() stackModel {
	return stackModel{
		exists: true, tier: m.any([]string{"", "gold", "silver"}), text: m.text(),
		secret: m.random.IntN(secrets+1) - 1, second: m.random.IntN(4) == 0,
	}
}

func (m *model) text() string           { return strconv.Itoa(m.random.IntN(1_000_000)) }
func (m *model) any(of []string) string { return of[m.random.IntN(len(of))] }
func (m *model) other(of []string, than string) string {
	return m.any(slices.DeleteFunc(slices.Clone(of), func(s string) bool { return s == than }))
}

func clusterName(i int) string { return "c" + strconv.Itoa(i) }
func stackName(s int) string   { return "s" + strconv.Itoa(s) }
func secretName(v int) string  { return "v" + strconv.Itoa(v) }

// halfOf is the half of a namespace that a Cluster, or a stack, belongs to.
func halfOf(i int) string { return []string{"x", "y"}[i%2] }

// serverOf is the workload control plane of a Cluster: two Clusters share it, of
// different halves.
func serverOf(i int) int { return i / 2 % servers }
