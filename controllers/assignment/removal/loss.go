// SPDX-License-Identifier: Apache-2.0

package removal

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/assignment/candidate"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// Losses returns the add-ons that the plan would take away from the cluster, as "namespace/name",
// by their stack. A stack that stays at a revision which isn't in force loses nothing but what is held of that revision. While the
// status is behind, each add-on of the assigned revision may be there.
func (p *Plan) Losses() map[string][]string {
	kept, unchanged := sets.New[string](), sets.New[string]()
	for _, w := range p.Wanted {
		c := candidate.Find(p.Candidates, w.Name)
		if c == nil {
			unchanged.Insert(w.Name)
			continue
		}
		keeps, stays := c.Keeps(w, stack.AssignedRevision(p.ClusterAddon.Spec.Stacks, w.Name))
		if kept = kept.Union(keeps); stays && !p.lacksHeld(w) {
			unchanged.Insert(w.Name)
		}
	}
	return p.lossesBut(kept, unchanged)
}

// lacksHeld reports whether a stack stays at the revision that the cluster has, without what is held of that.
func (p *Plan) lacksHeld(w addonsv1.StackRevision) bool {
	previous := stack.Assigned(p.ClusterAddon.Spec.Stacks, w.Name)
	return previous.HeldRemoval != nil && w.HeldRemoval == nil && p.isTold(previous)
}

// lossesBut returns the add-ons that are there, by their stack, without those that are kept, and stacks that are unchanged.
func (p *Plan) lossesBut(kept, unchanged sets.Set[string]) map[string][]string {
	lost := map[string][]string{}
	for i := range p.ClusterAddon.Status.Addons {
		a := &p.ClusterAddon.Status.Addons[i]
		release := a.Namespace + "/" + a.Name
		moved := stack.Assigned(p.Wanted, a.Stack).MovedAddons // its stack doesn't remove them; one that has given them away doesn't keep them, either
		if candidate.IsInstalled(a) && !unchanged.Has(a.Stack) && !kept.Has(release) && !slices.Contains(moved, release) {
			lost[a.Stack] = append(lost[a.Stack], release)
		}
	}
	for _, s := range p.ClusterAddon.Spec.Stacks {
		if c := candidate.Find(p.Candidates, s.Name); c != nil && isBehind(p.ClusterAddon) && !unchanged.Has(s.Name) {
			unreported := c.ReleasesAt(s.Revision).Difference(kept).Delete(lost[s.Name]...).Delete(stack.Assigned(p.Wanted, s.Name).MovedAddons...)
			lost[s.Name] = append(lost[s.Name], sets.List(unreported)...)
		}
	}
	return lost
}

// Unallowed returns which of a stack's losses its spec.allowedRemovals doesn't allow. The target is nil for a stack that is gone.
func (p *Plan) Unallowed(target *candidate.Stack, lost []string) []string {
	switch {
	case target == nil || target.Spec.AllowedRemovals == nil:
	case stack.IsAssigned(p.Wanted, target.Name):
		return slices.DeleteFunc(slices.Clone(lost), target.AllowsDropping)
	case target.AllowsLeaving(p.Cluster, stack.AssignedRevision(p.ClusterAddon.Spec.Stacks, target.Name)):
		return nil
	}
	return lost
}

// drops reports whether the plan may take add-ons of an assigned stack away from the cluster, or those that were left for it.
func (p *Plan) drops(previous addonsv1.StackRevision) bool {
	next, c := stack.Assigned(p.Wanted, previous.Name), candidate.Find(p.Candidates, previous.Name)
	if next.Revision == "" || c == nil {
		return previous.Revision != "" || slices.ContainsFunc(p.ClusterAddon.Status.Addons, func(a addonsv1.AddonStatus) bool {
			return candidate.IsInstalled(&a) && !stack.IsAssigned(p.Wanted, a.Stack)
		})
	}
	lacks := sets.New(previous.MovedAddons...)
	if next.Revision != previous.Revision {
		lacks = lacks.Union(c.ReleasesAt(previous.Revision).Difference(c.ReleasesAt(next.Revision)))
	}
	return !sets.New(next.MovedAddons...).IsSuperset(lacks)
}
