// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// losses returns the add-ons that the plan would take away from the cluster, as "namespace/name",
// by their stack. A stack that stays at a revision which isn't in force loses nothing. While the status is behind, each
// add-on of the assigned revision may be there.
func (p *plan) losses() map[string][]string {
	kept, unchanged := sets.New[string](), sets.New[string]()
	for _, w := range p.wanted {
		c, assigned := find(p.candidates, w.Name), stack.AssignedRevision(p.ca.Spec.Stacks, w.Name)
		if c == nil || w.Revision == "" || c.revision != w.Revision && (c.steps == nil || w.Revision == assigned) {
			unchanged.Insert(w.Name)
			if c != nil { // also what another stack gives back
				kept = kept.Union(c.releasesAt(w.Revision).Delete(w.MovedAddons...))
			}
			continue
		}
		are := stack.Presences(c.spec.Addons)
		if c.revision != w.Revision { // the rollout has another target
			are = c.presencesAt(w.Revision)
		}
		were := are
		if assigned != w.Revision {
			were = c.presencesAt(assigned)
		}
		for release, present := range are {
			if (present == addonsv1.PresentAlways || were[release] == present) && !slices.Contains(w.MovedAddons, release) {
				kept.Insert(release)
			}
		}
	}
	return p.lossesBut(kept, unchanged)
}

// lossesBut returns the add-ons that are there, by their stack, without those that are kept, and stacks that are unchanged.
func (p *plan) lossesBut(kept, unchanged sets.Set[string]) map[string][]string {
	lost := map[string][]string{}
	for i := range p.ca.Status.Addons {
		a := &p.ca.Status.Addons[i]
		release := a.Namespace + "/" + a.Name
		moved := stack.Assigned(p.wanted, a.Stack).MovedAddons // its stack doesn't remove them; one that has given them away doesn't keep them, either
		if isInstalled(a) && !unchanged.Has(a.Stack) && !kept.Has(release) && !slices.Contains(moved, release) {
			lost[a.Stack] = append(lost[a.Stack], release)
		}
	}
	for _, s := range p.ca.Spec.Stacks {
		if c := find(p.candidates, s.Name); c != nil && isBehind(p.ca) && !unchanged.Has(s.Name) {
			unreported := c.releasesAt(s.Revision).Difference(kept).Delete(lost[s.Name]...).Delete(stack.Assigned(p.wanted, s.Name).MovedAddons...)
			lost[s.Name] = append(lost[s.Name], sets.List(unreported)...)
		}
	}
	return lost
}

// isBehind reports whether the cluster may run more of what is assigned to it than its status says.
func isBehind(ca *addonsv1.ClusterAddon) bool { return ca.Status.ObservedGeneration < ca.Generation }

// isInstalled reports whether the add-on has a release with objects that may be removed, and isn't already.
func isInstalled(a *addonsv1.AddonStatus) bool {
	return a.Revision > 0 && a.Objects != nil && a.Phase != addonsv1.AddonRemoving && a.Reason != reasons.StackUnknown
}

// has reports whether the cluster has add-ons of the stack.
func has(ca *addonsv1.ClusterAddon, name string) bool {
	return names(ca.Spec.Stacks, name) && (isBehind(ca) || slices.ContainsFunc(ca.Status.Addons, func(a addonsv1.AddonStatus) bool {
		return a.Stack == name && isInstalled(&a)
	}))
}

// allowance returns how many of the clusters that have add-ons of a stack may lose some at once: at least one.
func allowance(limit *intstr.IntOrString, all int) int {
	return max(rollout.AtMost(*cmp.Or(limit, &addonsv1.DefaultRemovalLimit), all), 1)
}

// unallowed returns which of a stack's losses its spec.allowedRemovals doesn't allow. The target is nil for a stack that is gone.
func (p *plan) unallowed(target *candidate, lost []string) []string {
	switch {
	case target == nil || target.spec.AllowedRemovals == nil:
	case names(p.wanted, target.name):
		return slices.DeleteFunc(slices.Clone(lost), target.allowsDropping)
	case target.allowsLeaving(p.cluster, stack.AssignedRevision(p.ca.Spec.Stacks, target.name)):
		return nil
	}
	return lost
}

// allowsDropping reports whether a release, as "namespace/name", may go from all clusters.
func (c *candidate) allowsDropping(release string) bool {
	_, name, _ := strings.Cut(release, "/")
	return slices.Contains(c.spec.AllowedRemovals.Addons, name)
}

// allowsLeaving reports whether the stack lets the Cluster lose all of it. The revision that is assigned has to select the
// Cluster as it is now: then an edit takes it away, and no change of labels.
func (c *candidate) allowsLeaving(cluster *member.Member, assigned string) bool {
	previous := stack.SpecAt(c.revisions, assigned)
	return previous != nil && selects(previous, cluster) && selectsLeaving(&c.spec, cluster)
}

// selectsLeaving reports whether spec.allowedRemovals selects the Cluster.
func selectsLeaving(spec *addonsv1.AddonStackSpec, cluster *member.Member) bool {
	if spec.AllowedRemovals == nil || spec.AllowedRemovals.ClusterSelector == nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(spec.AllowedRemovals.ClusterSelector)
	return err == nil && selector.Matches(labels.Set(cluster.Labels))
}

// firstReport is how long a new ClusterAddon may take to report what its cluster runs.
const firstReport = time.Minute

// isUnreported reports whether a ClusterAddon has just been made, and hasn't said yet what its cluster runs. It may have
// been made again, for a cluster that runs much: that would be removed without being counted.
func isUnreported(ca *addonsv1.ClusterAddon, now time.Time) bool {
	return !hasReported(ca) && now.Sub(ca.CreationTimestamp.Time) < firstReport
}

// hasReported reports whether a ClusterAddon says what its cluster runs.
func hasReported(ca *addonsv1.ClusterAddon) bool {
	return ca.Status.ObservedUID == ca.UID && ca.Status.ObservedGeneration > 0
}

// drops reports whether the plan may take add-ons of an assigned stack away from the cluster, or those that were left for it.
func (p *plan) drops(previous addonsv1.StackRevision) bool {
	next, c := stack.Assigned(p.wanted, previous.Name), find(p.candidates, previous.Name)
	if next.Revision == "" || c == nil {
		return previous.Revision != "" || slices.ContainsFunc(p.ca.Status.Addons, func(a addonsv1.AddonStatus) bool { return isInstalled(&a) && !names(p.wanted, a.Stack) })
	}
	lacks := sets.New(previous.MovedAddons...)
	if next.Revision != previous.Revision {
		lacks = lacks.Union(c.releasesAt(previous.Revision).Difference(c.releasesAt(next.Revision)))
	}
	return !sets.New(next.MovedAddons...).IsSuperset(lacks)
}
