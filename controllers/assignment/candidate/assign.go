// SPDX-License-Identifier: Apache-2.0

package candidate

import (
	"cmp"
	"slices"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// Assign decides which revisions the cluster is to run. While a stack's selector can't be read, or it
// has no revision, the cluster keeps the revision that it has, or none: what is installed stays. A stack
// that is paused stays assigned as it is. One
// whose newest revision is lost does, too, and is assigned to no other cluster. If none is left of it, other
// clusters that the written spec selects wait for it.
//
// A spec that isn't kept as a revision yet selects nothing. But its stack stays assigned, or is
// assigned without a revision and waited for, if add-ons of another stack would be removed. So is a stack whose rollout
// hasn't come to the cluster yet, and one that is new. A cluster that is held keeps the revision that it has.
func Assign(cluster *member.Member, candidates []Stack, ca *addonsv1.ClusterAddon) []addonsv1.StackRevision {
	assigned := ca.Spec.Stacks
	var wanted, coming []addonsv1.StackRevision
	for i := range candidates {
		entry, comes := candidates[i].entryFor(cluster, ca)
		switch {
		case entry != nil:
			wanted = append(wanted, *entry)
		case comes:
			coming = append(coming, candidates[i].At(""))
		}
	}
	leaves := func(name string) bool { return !stack.IsAssigned(wanted, name) && !stack.IsAssigned(coming, name) }
	if slices.ContainsFunc(assigned, func(a addonsv1.StackRevision) bool { return leaves(a.Name) }) ||
		slices.ContainsFunc(ca.Status.Addons, func(a addonsv1.AddonStatus) bool { return IsInstalled(&a) && leaves(a.Stack) }) {
		wanted = append(wanted, coming...)
	}
	MoveAddons(cluster, candidates, assigned, wanted)
	return wanted
}

// entryFor returns the entry that the cluster is to have of the stack, nil for none. Without one, comes says that there may be
// one later.
func (c *Stack) entryFor(cluster *member.Member, ca *addonsv1.ClusterAddon) (entry *addonsv1.StackRevision, comes bool) {
	has := stack.Assigned(ca.Spec.Stacks, c.Name)
	isAssigned := has.Name != ""
	selects, err := stack.Selects(cluster.Namespace, &c.Spec, cluster)
	revision := c.Revision
	switch isKnown := !c.Lost && err == nil; {
	case isAssigned && (c.Paused || c.stays(isKnown, selects)):
		return &has, false // what is held of it stays held, too
	case !isKnown && c.Revision != "": // it isn't known which clusters it selects
		return nil, false
	case !selects && !c.mayCome(cluster, has.Revision):
		return nil, false
	case !selects && !isAssigned:
		return nil, true
	case c.IsNew && !isAssigned:
		return nil, true
	case !selects, c.Steps == nil && has.Revision != "" && rollout.IsHeld(ca, c.Name):
		revision = has.Revision
	case c.Steps != nil && c.Revision != "":
		if revision = c.stepFor(cluster, ca); revision == "" { // its turn comes
			return nil, true
		}
	}
	return new(c.At(revision)), false
}

// stays reports whether a cluster keeps the revision that it has, as it isn't known which one is in force.
func (c *Stack) stays(isKnown, selects bool) bool {
	return !isKnown || selects && c.Revision == ""
}

// mayCome reports whether the written spec selects the Cluster, and isn't in force yet. To a cluster without a revision, it
// may also come if that spec was rejected.
func (c *Stack) mayCome(cluster *member.Member, assigned string) bool {
	return c.Written != nil && selects(c.Written, cluster) || assigned == "" && len(c.wants(cluster)) > 0
}

// selects reports whether it is certain that a spec of the Cluster's namespace selects it.
func selects(spec *addonsv1.AddonStackSpec, cluster *member.Member) bool {
	selects, err := stack.Selects(cluster.Namespace, spec, cluster)
	return err == nil && selects
}

// Limited sorts the stacks, and returns at most as many of them as a cluster can run, assigned ones before others. It returns the
// names of those that are left out, too.
func Limited(wanted, assigned []addonsv1.StackRevision) (kept []addonsv1.StackRevision, left []string) {
	isNew := func(s addonsv1.StackRevision) int {
		if stack.IsAssigned(assigned, s.Name) {
			return 0
		}
		return 1
	}
	byName := func(a, b addonsv1.StackRevision) int { return cmp.Compare(a.Name, b.Name) }
	if len(wanted) > stack.MaxOfCluster {
		slices.SortFunc(wanted, func(a, b addonsv1.StackRevision) int { return cmp.Or(isNew(a)-isNew(b), byName(a, b)) })
		for _, s := range wanted[stack.MaxOfCluster:] {
			left = append(left, s.Name)
		}
		wanted = wanted[:stack.MaxOfCluster]
	}
	slices.SortFunc(wanted, byName)
	return wanted, left
}
