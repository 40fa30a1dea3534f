// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// candidate is an AddonStack as it is in force: its newest revision. Selector and
// add-ons are of one spec then, also while an edit is invalid, or the stack paused. Policies are as they are written now.
type candidate struct {
	name     string
	paused   bool
	spec     addonsv1.AddonStackSpec
	revision string // "" if there is none: then the spec is what is written now
	// lost says that the newest revision, as the stack's status names it, isn't there, or has fields that this program
	// doesn't know. Nobody knows then what is in force: an older one isn't.
	lost bool
	// revisions are the stack's, the newest first.
	revisions []appsv1.ControllerRevision
	// written is the spec as it is written now, if no revision keeps it yet; else nil.
	written *addonsv1.AddonStackSpec
	// steps are those of its rollout; nil if all clusters get a revision at once.
	steps *steps
}

// steps is what the rollout of a stack says of revisions.
type steps struct {
	// made is when the AddonStack was.
	made time.Time
	// completed is the index of the newest completed revision, -1 if there is none.
	completed int
	// replaced says that values that it was made with aren't there any more.
	replaced bool
	// hasTarget is false if all revisions are rejected, and none was completed.
	hasTarget bool
	// turns are the ClusterAddons that may be brought to the target now.
	turns sets.Set[string]
}

// find returns the candidate of a name, nil if there is none.
func find(candidates []candidate, name string) *candidate {
	for i := range candidates {
		if candidates[i].name == name {
			return &candidates[i]
		}
	}
	return nil
}

// at returns the stack in a revision, "" for none.
func (c *candidate) at(revision string) addonsv1.StackRevision {
	of := addonsv1.StackRevision{Name: c.name, Revision: revision, RemovalLimit: c.spec.RemovalLimit}
	if c.spec.DeletionPolicy == addonsv1.DeletionPolicyOrphan {
		of.DeletionPolicy = c.spec.DeletionPolicy
	}
	if c.paused {
		of.Paused = &c.paused
	}
	return of
}

func names(stacks []addonsv1.StackRevision, name string) bool {
	return stack.Assigned(stacks, name).Name != ""
}

// presencesAt returns when each add-on was there by a revision, as "namespace/name"; nil if that can't be told.
func (c *candidate) presencesAt(revision string) map[string]addonsv1.Present {
	spec := stack.SpecAt(c.revisions, revision)
	if spec == nil {
		return nil
	}
	return stack.Presences(spec.Addons)
}

// dropped returns the add-ons of a revision that the next one lacks, as "namespace/name", in no order.
func (c *candidate) dropped(previous, next string) []string {
	return sets.KeySet(c.presencesAt(previous)).Difference(sets.KeySet(c.presencesAt(next))).UnsortedList()
}

// hasOneOf reports whether the stack has one of the releases, as "namespace/name": maybe at other times.
func (c *candidate) hasOneOf(releases []string) bool {
	return sets.KeySet(stack.Presences(c.spec.Addons)).HasAny(releases...)
}

func stackKey(namespace, name string) client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: name}
}

// stepsOf returns the steps of a stack with these revisions, the newest first, and the index of the target. Without a
// target the newest one says which clusters are selected, and nobody is brought to it.
func (r *Reconciler) stepsOf(s *addonsv1.AddonStack, own []appsv1.ControllerRevision) (*steps, int) {
	marked := rollout.Revisions(own)
	is := &steps{made: s.CreationTimestamp.Time, completed: rollout.Completed(marked)}
	is.replaced = is.completed >= 0 && marked[is.completed].Replaced
	target := rollout.Target(marked)
	if target < 0 {
		return is, 0
	}
	is.hasTarget, is.turns = true, r.Turns.To(client.ObjectKeyFromObject(s), own[target].Name)
	return is, target
}

// stepFor returns the revision that a selected cluster is to have now, "" while it is to have none:
//
//   - the target, if it is the cluster's turn;
//   - the newest completed revision, if the cluster has none, or is behind and not held, and its values are still there;
//   - the target, if no such revision was completed, and the cluster is younger than the stack: it can't wait for its network;
//   - else the one that it has.
func (c *candidate) stepFor(cluster *member.Member, ca *addonsv1.ClusterAddon) string {
	previous := stack.AssignedRevision(ca.Spec.Stacks, c.name)
	at := slices.IndexFunc(c.revisions, func(r appsv1.ControllerRevision) bool { return r.Name == previous })
	isBehind := !rollout.IsHeld(ca, c.name) && at > c.steps.completed && (c.steps.completed >= 0 && c.revisions[c.steps.completed].Name != c.revision)
	isYoung := ca.Name == "" || ca.CreationTimestamp.After(c.steps.made)
	switch {
	case c.steps.turns.Has(cluster.ClusterAddon().Name):
		return c.revision
	case (previous == "" || isBehind) && c.completedSelects(cluster):
		return c.revisions[c.steps.completed].Name
	case previous == "" && isYoung && c.steps.hasTarget:
		return c.revision
	}
	return previous
}

// completedSelects reports whether the newest completed revision selects the cluster, and can still be had.
func (c *candidate) completedSelects(cluster *member.Member) bool {
	if c.steps.completed < 0 || c.steps.replaced {
		return false
	}
	spec, err := stack.SpecOf(&c.revisions[c.steps.completed])
	return err == nil && selects(spec, cluster)
}

// awaitTransfers has a stack stay at its revision on the cluster while an add-on that the next one lacks is about to come
// with another stack. Else the add-on would be uninstalled in between, with its data. It comes with the spec that is
// written now, where no revision keeps that yet, or with a rollout whose turn on the cluster hasn't come.
func awaitTransfers(cluster *member.Member, candidates []candidate, assigned, wanted []addonsv1.StackRevision) {
	for i := range wanted {
		c, previous := find(candidates, wanted[i].Name), stack.AssignedRevision(assigned, wanted[i].Name)
		if c == nil || previous == "" || previous == wanted[i].Revision {
			continue
		}
		coming := sets.New[string]()
		for j := range candidates {
			if to := &candidates[j]; to.name != c.name {
				coming = coming.Union(to.brings(cluster, stack.AssignedRevision(wanted, to.name)))
			}
		}
		if len(coming) > 0 && coming.HasAny(c.dropped(previous, wanted[i].Revision)...) {
			wanted[i].Revision = previous
		}
	}
}

// brings returns the add-ons of the stack's spec that is to be in force on the cluster later, as "namespace/name"; none
// if the cluster has it at that revision.
func (c *candidate) brings(cluster *member.Member, revision string) sets.Set[string] {
	coming := c.written
	if coming == nil && (c.revision == "" || c.revision != revision) {
		coming = &c.spec
	}
	if coming == nil || !selects(coming, cluster) {
		return nil
	}
	return sets.KeySet(stack.Presences(coming.Addons))
}
