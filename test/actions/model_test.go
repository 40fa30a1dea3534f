// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"maps"
	"slices"
	"strconv"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// A fleet has so many stacks and components. A component is in one stack at a time, by varying names.
const (
	stacks       = 4
	components   = 6
	names        = 3 // that a component may have
	withCRDs     = 4 // the component whose chart has a kind in crds/
	withTemplate = 5 // the component whose chart has a kind as a template
	withSecret   = 1 // the component that has its text from a Secret
)

func clusterName(c int) string   { return "cluster-" + strconv.Itoa(c) }
func stackName(s int) string     { return "stack-" + strconv.Itoa(s) }
func componentName(k int) string { return "k" + strconv.Itoa(k) }

// model says how the operator wants the fleet, and where each component stands on each cluster for that.
type model struct {
	clusters   []cluster
	stacks     [stacks]stack
	components [components]component
	shares     map[share]state
	epoch      int // counts what has Chandler forget all removals
}

type cluster struct {
	exists bool
	paused bool // by its spec
	held   bool // its ClusterAddon was annotated so that changes of stacks don't reach it
	labels map[string]string
	epoch  int // counts what has Chandler forget its removals
}

type stack struct {
	exists   bool
	selector map[string]string
	has      [components]bool
	isFree   bool            // its removalLimit is 100%
	allowed  map[string]bool // release names in allowedRemovals
	leaving  map[string]string
	paused   bool
	sealed   bool              // it was deleted while it was paused, and Chandler knew of the pause
	orphan   bool              // its deletionPolicy
	rollout  *addonsv1.Rollout // it isn't changed in place
}

type component struct {
	name  int // which of its names it has
	text  int
	extra bool
	adopt bool // a stack may have left it behind
}

// leaves reports whether an edit of a stack doesn't select a cluster any more that the stack selected. If that is allowed, all of
// the stack may go from the cluster, also what was held there.
func leaves(before, after *stack, labels map[string]string) bool {
	return before.exists && selects(before.selector, labels) && !selects(after.selector, labels)
}

// release is the name of the component's add-on.
func (m *model) release(k int) string {
	return componentName(k) + "-" + strconv.Itoa(m.components[k].name)
}

// share is a component on a cluster.
type share struct{ cluster, component int }

// standing says what may happen to a component on a cluster.
type standing int

const (
	// kept is a component that Chandler has no reason to remove: it never had it, or forgot it.
	kept standing = iota
	// wanted is a component that a stack has for the cluster.
	wanted
	// lost is a component that a stack had for the cluster until the operator changed that.
	lost
)

type state struct {
	standing standing
	stack    int       // that wants it, or lost it
	since    time.Time // of the loss
	excused  bool      // the operator allowed or confirmed it
	sealed   bool      // its stack was deleted while it was paused
	extra    bool      // its second ConfigMap is wanted, too
	name     int       // by which it is, or was, wanted
	// givers may have a release of it still. Chandler wasn't seen at rest since another stack wants it, or that waits.
	givers [stacks]bool
	// renamed is set if the release of a giver, or of the stack that lost it, may still be there by another name.
	renamed bool
	// pending is set if that release may go: the edit by which the component is wanted again waits for a pause, a rollout or a
	// hold, or it is excused.
	pending bool
}

func (m *model) clone() *model {
	n := *m
	n.clusters = slices.Clone(m.clusters)
	for c := range n.clusters {
		n.clusters[c].labels = maps.Clone(m.clusters[c].labels)
	}
	for s := range n.stacks {
		n.stacks[s].selector, n.stacks[s].allowed, n.stacks[s].leaving =
			maps.Clone(m.stacks[s].selector), maps.Clone(m.stacks[s].allowed), maps.Clone(m.stacks[s].leaving)
	}
	n.shares = maps.Clone(m.shares)
	return &n
}

// selects reports whether labels match; none match every cluster.
func selects(selector, labels map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return true
}

// wanting returns the stack that has the component for the cluster.
func (m *model) wanting(x share) (int, bool) {
	for s := range m.stacks {
		stack, c := &m.stacks[s], &m.clusters[x.cluster]
		if stack.exists && c.exists && stack.has[x.component] && selects(stack.selector, c.labels) {
			return s, true
		}
	}
	return 0, false
}

// waits reports whether an edit of a stack that has the component waits to reach the cluster.
func (m *model) waits(x share, s int) bool {
	return m.stacks[s].paused || m.stacks[s].rollout != nil || m.clusters[x.cluster].held
}

// follow brings the shares up to date with stacks and clusters. Before is the model before the change.
func (m *model) follow(now time.Time, before *model) {
	for c := range m.clusters {
		for k := range components {
			x := share{c, k}
			was, is := m.shares[x], state{}
			s, isWanted := m.wanting(x)
			switch {
			case isWanted:
				is = state{standing: wanted, stack: s, extra: m.components[k].extra, name: m.components[k].name, givers: was.givers, renamed: was.renamed}
				is.givers[was.stack] = is.givers[was.stack] || was.standing != kept && was.stack != s
				is.renamed = is.renamed || (was.standing == lost || is.isGiven()) && was.name != is.name
				is.excused = is.renamed && (was.excused || m.isFreeToGive(is))
				is.pending = is.renamed && (is.excused || m.waits(x, s))
			case !m.clusters[c].exists || was.standing == kept:
			default:
				is = was
				if was.standing == wanted {
					is = state{standing: lost, stack: was.stack, since: now, name: was.name, givers: was.givers, renamed: was.renamed}
				}
				of := &m.stacks[is.stack]
				is.sealed = !of.exists && (is.sealed || was.standing == wanted && of.sealed)
				is.excused = is.excused || m.isFreeToGive(is) || of.isFree && !is.sealed || of.exists && (of.allowed[before.release(k)] ||
					of.leaving != nil && selects(of.leaving, m.clusters[c].labels) && leaves(&before.stacks[is.stack], of, before.clusters[c].labels))
			}
			m.shares[x] = is
		}
	}
}
