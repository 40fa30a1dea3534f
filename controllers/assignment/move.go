// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// moveAddons notes in each entry which add-ons move from its stack to another one. The specs as they are written say which
// stack is to have an add-on, however far rollouts are. So no rollout waits for another one:
//
//   - An add-on that the entry's revision lacks stays until the stack that is to have it comes to the cluster.
//   - An add-on that the revision has is given to a stack that is there with it, if the written spec lacks it.
//   - An add-on that came from another stack stays when its stack goes back to a revision without it.
func moveAddons(cluster *member.Member, candidates []candidate, assigned, wanted []addonsv1.StackRevision) {
	for i := range wanted {
		is, was := &wanted[i], stack.Assigned(assigned, wanted[i].Name)
		c := find(candidates, is.Name)
		isSame := c != nil && c.isWritten(is.Revision) && was.Revision == is.Revision && len(was.MovedAddons) == 0
		if c == nil || c.lost || is.Revision == "" || isSame && selects(&c.spec, cluster) {
			continue // nothing can move
		}
		has, wants, moved := c.releasesAt(is.Revision), c.wants(cluster), sets.New(is.MovedAddons...)
		lacks := c.releasesAt(was.Revision).Insert(was.MovedAddons...).Difference(has)
		gives, back := has.Difference(wants), lacks.Intersection(wants)
		for j := 0; j < len(candidates) && len(lacks)+len(gives) > 0; j++ {
			to := &candidates[j]
			if to.name == c.name {
				continue
			}
			at, itWants := stack.AssignedRevision(wanted, to.name), to.wants(cluster)
			if !to.isWritten(at) {
				maps.Copy(moved, lacks.Intersection(itWants))
			}
			if len(gives) > 0 {
				maps.Copy(moved, gives.Intersection(itWants).Intersection(to.releasesAt(at)))
			}
			if len(back) > 0 {
				maps.Copy(moved, back.Intersection(to.had()))
			}
		}
		is.MovedAddons = slices.Sorted(maps.Keys(moved))
	}
}

// areAwaited reports whether another stack is to have one of the releases, and is there at another revision than it is written: it
// is paused, or its rollout hasn't come to the cluster. For one that is there without a revision, add-ons stay anyway.
func (p *plan) areAwaited(lost []string) bool {
	return slices.ContainsFunc(p.candidates, func(to candidate) bool {
		at := stack.AssignedRevision(p.wanted, to.name)
		return at != "" && !to.isWritten(at) && to.wants(p.cluster).HasAny(lost...)
	})
}

// newest returns the name of the newest revision, also if it was rejected.
func (c *candidate) newest() string {
	if len(c.revisions) == 0 {
		return c.revision
	}
	return c.revisions[0].Name
}

// isWritten reports whether a revision is the stack as it is written now.
func (c *candidate) isWritten(revision string) bool {
	return c.written == nil && revision != "" && revision == c.newest()
}

// wants returns the add-ons that the stack is to have on the cluster in the end, as it is written now. Until a bundle is read,
// they are those of the newest revision, too.
func (c *candidate) wants(cluster *member.Member) sets.Set[string] {
	wants := releasesFor(c.written, cluster)
	if c.written == nil || c.written.Source != nil {
		newest := &c.spec
		if c.newest() != c.revision {
			newest = stack.SpecAt(c.revisions, c.newest())
		}
		wants = wants.Union(releasesFor(newest, cluster))
	}
	return wants
}

// had returns the add-ons of all revisions that are kept.
func (c *candidate) had() sets.Set[string] {
	all := sets.New[string]()
	for i := range c.revisions {
		maps.Copy(all, c.releasesAt(c.revisions[i].Name))
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

// awaitsRequest returns for how long removals of an entry wait for another request: kubectl apply moves an add-on with two.
// A removal that was confirmed doesn't wait.
func (r *Reconciler) awaitsRequest(p *plan, previous addonsv1.StackRevision, lost []string) time.Duration {
	if find(p.candidates, previous.Name) == nil || len(confirmationsOf(p.ca)) > 0 || len(lost) == 0 && !p.drops(previous) {
		return 0
	}
	var changed time.Time
	for i := range p.candidates { // of moved add-ons, also the stack that was to have them
		if name := p.candidates[i].name; name == previous.Name || len(previous.MovedAddons) > 0 {
			changed = slices.MaxFunc([]time.Time{changed, r.absences.of(stackKey(p.ca.Namespace, name)).changed}, time.Time.Compare)
		}
	}
	return max(0, deletionGrace-r.Clock.Since(changed))
}
