// SPDX-License-Identifier: Apache-2.0

package candidate

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// MoveAddons notes in each entry which add-ons move from its stack to another one. The specs as they are written say which
// stack is to have an add-on, however far rollouts are. So no rollout waits for another one:
//
//   - An add-on that the entry's revision lacks stays until the stack that is to have it comes to the cluster.
//   - An add-on that the revision has is given to a stack that is there with it, if the written spec lacks it.
//   - An add-on that came from another stack stays when its stack goes back to a revision without it.
func MoveAddons(cluster *member.Member, candidates []Stack, assigned, wanted []addonsv1.StackRevision) {
	for i := range wanted {
		is, was := &wanted[i], stack.Assigned(assigned, wanted[i].Name)
		c := Find(candidates, is.Name)
		isSame := c != nil && c.isWritten(is.Revision) && was.Revision == is.Revision && len(was.MovedAddons) == 0
		if c == nil || c.Lost || is.Revision == "" || isSame && selects(&c.Spec, cluster) {
			continue // nothing can move
		}
		has, wants, moved := c.ReleasesAt(is.Revision), c.wants(cluster), sets.New(is.MovedAddons...)
		lacks := c.ReleasesAt(was.Revision).Insert(was.MovedAddons...).Difference(has)
		gives, back := has.Difference(wants), lacks.Intersection(wants)
		for j := 0; j < len(candidates) && len(lacks)+len(gives) > 0; j++ {
			to := &candidates[j]
			if to.Name == c.Name {
				continue
			}
			at, itWants := stack.AssignedRevision(wanted, to.Name), to.wants(cluster)
			if !to.isWritten(at) {
				maps.Copy(moved, lacks.Intersection(itWants))
			}
			if len(gives) > 0 {
				maps.Copy(moved, gives.Intersection(itWants).Intersection(to.ReleasesAt(at)))
			}
			if len(back) > 0 {
				maps.Copy(moved, back.Intersection(to.had()))
			}
		}
		is.MovedAddons = slices.Sorted(maps.Keys(moved))
	}
}

// AreAwaited reports whether another stack is to have one of the releases, and is there at another revision than it is written: it
// is paused, or its rollout hasn't come to the cluster. For one that is there without a revision, add-ons stay anyway.
func AreAwaited(cluster *member.Member, candidates []Stack, wanted []addonsv1.StackRevision, lost []string) bool {
	return slices.ContainsFunc(candidates, func(to Stack) bool {
		at := stack.AssignedRevision(wanted, to.Name)
		return at != "" && !to.isWritten(at) && to.wants(cluster).HasAny(lost...)
	})
}

// newest returns the name of the newest revision, also if it was rejected.
func (c *Stack) newest() string {
	if len(c.Revisions) == 0 {
		return c.Revision
	}
	return c.Revisions[0].Name
}

// isWritten reports whether a revision is the stack as it is written now.
func (c *Stack) isWritten(revision string) bool {
	return c.Written == nil && revision != "" && revision == c.newest()
}

// wants returns the add-ons that the stack is to have on the cluster in the end, as it is written now. Until a bundle is read,
// they are those of the newest revision, too.
func (c *Stack) wants(cluster *member.Member) sets.Set[string] {
	wants := releasesFor(c.Written, cluster)
	if c.Written == nil || c.Written.Source != nil {
		newest := &c.Spec
		if c.newest() != c.Revision {
			newest = stack.SpecAt(c.Revisions, c.newest())
		}
		wants = wants.Union(releasesFor(newest, cluster))
	}
	return wants
}

// had returns the add-ons of all revisions that are kept.
func (c *Stack) had() sets.Set[string] {
	all := sets.New[string]()
	for i := range c.Revisions {
		maps.Copy(all, c.ReleasesAt(c.Revisions[i].Name))
	}
	return all
}

// releasesFor returns the add-ons of a spec that selects the cluster, none of another one.
func releasesFor(spec *addonsv1.AddonStackSpec, cluster *member.Member) sets.Set[string] {
	if spec == nil || !selects(spec, cluster) {
		return nil
	}
	return sets.KeySet(stack.Presences(spec.Addons))
}
