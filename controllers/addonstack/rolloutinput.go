// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/annotations"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/standing"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// heldReason says that a cluster is kept out of rollouts, by its annotation.
const heldReason = "Held"

// input returns all that the decision depends on.
func (r rollouts) input(q *gathered) rollout.Input {
	strategy, invalid := rollout.StrategyOf(q.stack.Spec.Rollout, field.NewPath("spec", "rollout"))
	in := rollout.Input{Now: r.Clock.Now(), Strategy: strategy}
	in.Aim(q.marked, q.target)
	if q.target >= 0 {
		in.Approved, in.Began = rollout.Approved(&q.revisions[q.target]), rollout.Began(&q.revisions[q.target])
	}
	switch closed, until := rollout.Closed(strategy.Windows, in.Now); {
	case annotations.HasPaused(q.stack), len(invalid) > 0:
		in.Stop = rollout.Stop{Phase: addonsv1.RolloutPaused}
	case closed && !in.Back: // who goes back doesn't wait for it
		in.Stop = rollout.Stop{Phase: addonsv1.RolloutWaitingForWindow, Until: until}
	default:
		in.Stop.Until = until
	}
	unfinished := rollout.Unfinished(q.marked, q.target)
	for _, ca := range q.clusters.selected {
		c := q.cluster(ca, q.clusters.members[ca.Name])
		c.Unfinished = unfinished.Has(c.Assigned)
		if c.Joined.IsZero() { // it has no ClusterAddon yet
			c.Joined = in.Now
		}
		in.Clusters = append(in.Clusters, c)
	}
	if r.shares(q.stack) {
		in.Others = withInstance(slices.Clone(q.stack.Status.Instances), r.WatchFilter, nil)
	}
	return in
}

// cluster returns what the decision is to know of a cluster. Its status may be about another revision than it is to have.
func (q *gathered) cluster(ca *addonsv1.ClusterAddon, of *member.Member) rollout.Cluster {
	c := rollout.Cluster{Name: ca.Name, Labels: of.Labels, Joined: ca.CreationTimestamp.Time, Assigned: q.assigned(ca), WasReady: true}
	c.Away = q.whyAway(ca, c.Assigned == q.revision())
	if b := stack.Blocking(ca); b != nil {
		c.Away, c.Unreachable, c.AwaySince = b.Reason, b.Type == addonsv1.ClusterReachableCondition, b.LastTransitionTime.Time
	}
	is := first(ca.Status.Stacks, func(s *addonsv1.StackStatus) bool { return s.Name == q.stack.Name })
	switch {
	case is == nil:
		c.State = addonsv1.StackProgressing
	case is.Revision == c.Assigned:
		c.State, c.Since, c.Started, c.WasReady = is.State, is.Since.Time, is.Started.Time, ptr.Deref(is.WasReady, true)
		if state, _ := standing.Of(ca, q.stack.Name, c.Assigned, q.addonsOf(c.Assigned)); c.State == addonsv1.StackReady && state == standing.Progressing {
			c.State = addonsv1.StackProgressing // an add-on isn't in the status yet
		}
	default:
		c.WasReady = ptr.Deref(rollout.WasReady(*is), true)
		if c.State = is.State; c.Assigned == q.revision() {
			c.State = addonsv1.StackProgressing
		}
	}
	return c
}

// whyAway returns why nothing can be done on a cluster that can be worked on, "" if something can.
func (q *gathered) whyAway(ca *addonsv1.ClusterAddon, hasTarget bool) string {
	switch {
	case hasTarget && slices.ContainsFunc(ca.Status.Addons, q.waitsForUpgrade):
		return reasons.WaitingForUpgrade
	case hasTarget:
		return ""
	case rollout.IsHeld(ca, q.stack.Name):
		return heldReason
	case stack.HeldRemoval(ca.Spec.Stacks, q.stack.Name) != nil:
		return addonsv1.RemovalHeldReason
	}
	return ""
}

// waitsForUpgrade reports whether an add-on of the stack waits for an upgrade of the cluster's Kubernetes.
func (q *gathered) waitsForUpgrade(a addonsv1.AddonStatus) bool {
	return a.Stack == q.stack.Name && slices.Contains([]string{reasons.WaitingForControlPlane, reasons.WaitingForWorkers, reasons.WaitingForUpgrade}, a.Reason)
}
