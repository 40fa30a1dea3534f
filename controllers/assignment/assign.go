// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// absent returns the assigned stacks that aren't candidates and stay assigned: those that left the
// scope of this instance by relabelling, and those whose deletion isn't certain yet. For the
// latter it returns again as true.
func (r *Reconciler) absent(ctx context.Context, ca *addonsv1.ClusterAddon, candidates []candidate) (stay []addonsv1.StackRevision, again bool, err error) {
	for _, a := range ca.Spec.Stacks {
		key := stackKey(ca.Namespace, a.Name)
		if find(candidates, a.Name) != nil {
			continue
		}
		s := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: addonsv1.GroupVersion.String(), Kind: "AddonStack"}}
		err := r.APIReader.Get(ctx, key, s)
		switch {
		case err == nil && s.DeletionTimestamp.IsZero():
			stay = append(stay, a)
			continue
		case client.IgnoreNotFound(err) != nil:
			return nil, false, fmt.Errorf("looking for AddonStack %s: %w", a.Name, err)
		}
		mayReturn, err := r.mayReturn(ctx, key, ca)
		if err != nil {
			return nil, false, fmt.Errorf("AddonStack %s is gone: %w", a.Name, err)
		}
		if mayReturn {
			stay, again = append(stay, a), true
		}
	}
	return stay, again, nil
}

// asWritten returns a ClusterAddon whose assigned stacks have the policies that are written now, and say whether they are
// paused. A stack that isn't there has those that it was last seen with.
func (r *Reconciler) asWritten(ca *addonsv1.ClusterAddon, candidates []candidate) *addonsv1.ClusterAddon {
	written := *ca
	written.Spec.Stacks = slices.Clone(ca.Spec.Stacks)
	for i := range written.Spec.Stacks {
		of := &written.Spec.Stacks[i]
		is := r.absences.of(stackKey(ca.Namespace, of.Name)).last
		if c := find(candidates, of.Name); c != nil {
			is = c.at("")
		}
		if is.Name != "" {
			of.RemovalLimit, of.DeletionPolicy, of.Paused = is.RemovalLimit, is.DeletionPolicy, is.Paused
		}
	}
	return &written
}

// assign decides which revisions the cluster is to run. While a stack's selector can't be read, or it
// has no revision, the cluster keeps the revision that it has, or none: what is installed stays. A stack
// that is paused stays assigned as it is. One
// whose newest revision is lost does, too, and is assigned to no other cluster. If none is left of it, other
// clusters that the written spec selects wait for it.
//
// A spec that isn't kept as a revision yet selects nothing. But its stack stays assigned, or is
// assigned without a revision and waited for, if add-ons of another stack would be removed. So is a stack whose rollout
// hasn't come to the cluster yet, and one that is new. A cluster that is held keeps the revision that it has.
func assign(cluster *member.Member, candidates []candidate, ca *addonsv1.ClusterAddon) []addonsv1.StackRevision {
	assigned := ca.Spec.Stacks
	var wanted, coming []addonsv1.StackRevision
	for i := range candidates {
		entry, comes := candidates[i].entryFor(cluster, ca)
		switch {
		case entry != nil:
			wanted = append(wanted, *entry)
		case comes:
			coming = append(coming, candidates[i].at(""))
		}
	}
	leaves := func(stack string) bool { return !names(wanted, stack) && !names(coming, stack) }
	if slices.ContainsFunc(assigned, func(a addonsv1.StackRevision) bool { return leaves(a.Name) }) ||
		slices.ContainsFunc(ca.Status.Addons, func(a addonsv1.AddonStatus) bool { return isInstalled(&a) && leaves(a.Stack) }) {
		wanted = append(wanted, coming...)
	}
	moveAddons(cluster, candidates, assigned, wanted)
	return wanted
}

// entryFor returns the entry that the cluster is to have of the stack, nil for none. Without one, comes says that there may be
// one later.
func (c *candidate) entryFor(cluster *member.Member, ca *addonsv1.ClusterAddon) (entry *addonsv1.StackRevision, comes bool) {
	has := stack.Assigned(ca.Spec.Stacks, c.name)
	isAssigned := has.Name != ""
	selects, err := stack.Selects(cluster.Namespace, &c.spec, cluster)
	revision := c.revision
	switch isKnown := !c.lost && err == nil; {
	case isAssigned && (c.paused || c.stays(isKnown, selects)):
		return &has, false // what is held of it stays held, too
	case !isKnown && c.revision != "": // nobody can say what it selects
		return nil, false
	case !selects && !c.mayCome(cluster, has.Revision):
		return nil, false
	case !selects && !isAssigned:
		return nil, true
	case c.isNew && !isAssigned:
		return nil, true
	case !selects, c.steps == nil && has.Revision != "" && rollout.IsHeld(ca, c.name):
		revision = has.Revision
	case c.steps != nil && c.revision != "":
		if revision = c.stepFor(cluster, ca); revision == "" { // its turn comes
			return nil, true
		}
	}
	return new(c.at(revision)), false
}

// stays reports whether a cluster keeps the revision that it has: nobody knows which one is in force.
func (c *candidate) stays(isKnown, selects bool) bool {
	return !isKnown || selects && c.revision == ""
}

// mayCome reports whether the written spec selects the Cluster, and isn't in force yet. To a cluster without a revision, it
// may also come if that spec was rejected.
func (c *candidate) mayCome(cluster *member.Member, assigned string) bool {
	return c.written != nil && selects(c.written, cluster) || assigned == "" && len(c.wants(cluster)) > 0
}

// selects reports whether it is certain that a spec of the Cluster's namespace selects it.
func selects(spec *addonsv1.AddonStackSpec, cluster *member.Member) bool {
	selects, err := stack.Selects(cluster.Namespace, spec, cluster)
	return err == nil && selects
}

// limited sorts the stacks, and returns at most as many of them as a cluster can run, assigned ones before others. It returns the
// names of those that are left out, too.
func limited(wanted, assigned []addonsv1.StackRevision) (kept []addonsv1.StackRevision, left []string) {
	isNew := func(s addonsv1.StackRevision) int {
		if names(assigned, s.Name) {
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
