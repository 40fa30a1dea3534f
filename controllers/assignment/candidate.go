// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"cmp"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
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
	// keeps is the UID of the revision that spec was read from, and unknown says that it has fields which this program doesn't know.
	keeps   types.UID
	unknown bool
	// made is when the AddonStack was. isNew says that it was a moment ago, and that its first revision is to come: to assign the
	// stack without one would change each of its clusters twice.
	made  time.Time
	isNew bool
	// revisions are the stack's, the newest first.
	revisions []appsv1.ControllerRevision
	// written is the spec as it is written now, if no revision keeps it yet; else nil.
	written *addonsv1.AddonStackSpec
	// steps are those of its rollout; nil if all clusters get a revision at once.
	steps *steps
	// generation is the AddonStack's.
	generation int64
}

// steps is what the rollout of a stack says of revisions.
type steps struct {
	// made is when the AddonStack was.
	made time.Time
	// marked are the stack's revisions by their marks, the newest first, and target is the index of the one that the rollout
	// is of, -1 if there is none.
	marked []rollout.Revision
	target int
	// turns are the ClusterAddons that may be brought to the target now, or away from it if it is rejected.
	turns sets.Set[string]
	now   time.Time
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

// releasesAt returns the add-ons of a revision, as "namespace/name".
func (c *candidate) releasesAt(revision string) sets.Set[string] {
	return sets.KeySet(c.presencesAt(revision))
}

// hasOneOf reports whether the stack has one of the releases, as "namespace/name": maybe at other times.
func (c *candidate) hasOneOf(releases []string) bool {
	return sets.KeySet(stack.Presences(c.spec.Addons)).HasAny(releases...)
}

func stackKey(namespace, name string) client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: name}
}

// stepsOf returns the steps of a stack with these revisions, the newest first, but for what time brings. It also returns the index
// of the revision that says which clusters are selected: the target or, without one, the newest.
func stepsOf(s *addonsv1.AddonStack, own []appsv1.ControllerRevision) (*steps, int) {
	marked := rollout.Revisions(own)
	is := &steps{made: s.CreationTimestamp.Time, marked: marked, target: rollout.Target(marked)}
	return is, max(is.target, 0)
}

// stepFor returns the revision that a selected cluster is to have now, "" while it is to have none:
//
//   - the target, if it is the cluster's turn; or what it had before the target, if that is rejected;
//   - amid a rollout, the one that it came back with;
//   - the revision for clusters that join, if the cluster has none, or is behind and not held, and its values are still there;
//   - the target, if there is no such revision, and the cluster is younger than the stack: it can't wait for its network;
//   - else the one that it has.
func (c *candidate) stepFor(cluster *member.Member, ca *addonsv1.ClusterAddon) string {
	is, previous := c.steps, stack.AssignedRevision(ca.Spec.Stacks, c.name)
	at := slices.IndexFunc(is.marked, func(r rollout.Revision) bool { return r.Name == previous })
	entry := rollout.Entry(is.marked, is.target)
	isBehind := !rollout.IsHeld(ca, c.name) && at > entry && entry >= 0 && entry != is.target
	isRejected := is.target >= 0 && is.marked[is.target].Rejected
	recorded, waits := returning(ca, c.name, is.marked, is.now)
	switch hasTurn := is.turns.Has(cluster.ClusterAddon().Name); {
	case hasTurn && !isRejected:
		return c.revision
	case hasTurn && at == is.target:
		return cmp.Or(rollout.GoesBackTo(is.marked, is.target, *stack.StatusOf(&ca.Status, c.name)), previous)
	case previous == "" && entry != is.target && (recorded != "" || waits):
		return recorded
	case (previous == "" || isBehind) && c.selectsAt(entry, cluster):
		return is.marked[entry].Name
	case previous == "" && isYoung(cluster, ca, is.made) && is.target >= 0 && !isRejected:
		return c.revision
	}
	return previous
}

// isYoung reports whether a cluster came after its stack was made.
func isYoung(cluster *member.Member, ca *addonsv1.ClusterAddon, made time.Time) bool {
	if cluster.Cluster != nil {
		return cluster.Cluster.CreationTimestamp.After(made)
	}
	return ca.Name == "" || ca.CreationTimestamp.After(made)
}

// selectsAt reports whether the revision at an index selects the cluster, and can still be had.
func (c *candidate) selectsAt(at int, cluster *member.Member) bool {
	if at < 0 || c.steps.marked[at].Replaced {
		return false
	}
	spec, err := stack.SpecOf(&c.revisions[at])
	return err == nil && selects(spec, cluster)
}
