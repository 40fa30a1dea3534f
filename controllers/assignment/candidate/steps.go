// SPDX-License-Identifier: Apache-2.0

package candidate

import (
	"cmp"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// stepsOf returns the steps of a stack with these revisions, the newest first, but for what time brings. It also returns the index
// of the revision that says which clusters are selected: the target or, without one, the newest.
func stepsOf(s *addonsv1.AddonStack, own []appsv1.ControllerRevision) (*Steps, int) {
	marked := rollout.Revisions(own)
	is := &Steps{Made: s.CreationTimestamp.Time, Marked: marked, Target: rollout.Target(marked)}
	return is, max(is.Target, 0)
}

// stepFor returns the revision that a selected cluster is to have now, "" while it is to have none:
//
//   - the target, if it is the cluster's turn; or what it had before the target, if that is rejected;
//   - amid a rollout, the one that it came back with;
//   - the revision for clusters that join, if the cluster has none, or is behind and not held, and its values are still there;
//   - the target, if there is no such revision, and the cluster is younger than the stack: it can't wait for its network;
//   - else the one that it has.
func (c *Stack) stepFor(cluster *member.Member, ca *addonsv1.ClusterAddon) string {
	is, previous := c.Steps, stack.AssignedRevision(ca.Spec.Stacks, c.Name)
	at := slices.IndexFunc(is.Marked, func(r rollout.Revision) bool { return r.Name == previous })
	entry := rollout.Entry(is.Marked, is.Target)
	isBehind := !rollout.IsHeld(ca, c.Name) && at > entry && entry >= 0 && entry != is.Target
	isRejected := is.Target >= 0 && is.Marked[is.Target].Rejected
	recorded, waits := Returning(ca, c.Name, is.Marked, is.Now)
	switch hasTurn := is.Turns.Has(cluster.ClusterAddon().Name); {
	case hasTurn && !isRejected:
		return c.Revision
	case hasTurn && at == is.Target:
		return cmp.Or(rollout.GoesBackTo(is.Marked, is.Target, *stack.StatusOf(&ca.Status, c.Name)), previous)
	case previous == "" && entry != is.Target && (recorded != "" || waits):
		return recorded
	case (previous == "" || isBehind) && c.selectsAt(entry, cluster):
		return is.Marked[entry].Name
	case previous == "" && isYoung(cluster, ca, is.Made) && is.Target >= 0 && !isRejected:
		return c.Revision
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
func (c *Stack) selectsAt(at int, cluster *member.Member) bool {
	if at < 0 || c.Steps.Marked[at].Replaced {
		return false
	}
	spec, err := stack.SpecOf(&c.Revisions[at])
	return err == nil && selects(spec, cluster)
}
