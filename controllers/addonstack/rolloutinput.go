// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"cmp"
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/conditions"

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
			if b := conditions.Get(ca, addonsv1.AddonsReadyCondition); b != nil && b.Status == metav1.ConditionUnknown {
				c.Away = cmp.Or(c.Away, b.Reason) // as one that falls silent after it was ready
			} else {
				c.State = addonsv1.StackProgressing // an add-on isn't in the status yet
			}
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
	is := stack.Assigned(ca.Spec.Stacks, q.stack.Name)
	switch {
	case is.HeldRemoval != nil && is.Revision != q.revision(): // also if it is its turn
		return addonsv1.RemovalHeldReason
	case hasTarget && slices.ContainsFunc(ca.Status.Addons, q.waitsForUpgrade):
		return reasons.WaitingForUpgrade
	case hasTarget:
		return ""
	case rollout.IsHeld(ca, q.stack.Name):
		return heldReason
	}
	return ""
}

// waitsForUpgrade reports whether an add-on of the stack waits for an upgrade of the cluster's Kubernetes.
func (q *gathered) waitsForUpgrade(a addonsv1.AddonStatus) bool {
	return a.Stack == q.stack.Name && slices.Contains([]string{reasons.WaitingForControlPlane, reasons.WaitingForWorkers, reasons.WaitingForUpgrade}, a.Reason)
}

// noteReplaced notes on each revision which objects have other values than the revision was made with. The API server is
// asked once more before that is written.
func (r rollouts) noteReplaced(ctx context.Context, revisions []appsv1.ControllerRevision) error {
	for i := range revisions {
		noted := revisions[i].Annotations[addonsv1.RolloutInputsReplacedAnnotation]
		replaced, err := replacedIn(ctx, &revisions[i], r.Values.Digest)
		if err == nil && replaced != noted {
			replaced, err = replacedIn(ctx, &revisions[i], r.Values.DigestNow)
		}
		if err != nil {
			return err
		}
		if replaced == noted {
			continue
		}
		if err := r.annotate(ctx, &revisions[i], addonsv1.RolloutInputsReplacedAnnotation, replaced); err != nil {
			return err
		}
	}
	return nil
}

// replacedIn returns the names of objects that have other values than a revision pins, separated by commas.
func replacedIn(ctx context.Context, revision *appsv1.ControllerRevision, digest digester) (string, error) {
	pinned, err := stack.InputsOf(revision)
	if err != nil {
		return "", err
	}
	replaced := sets.New[string]()
	for name, digestThen := range pinned {
		ref, ok := stack.ValuesNamed(name)
		if !ok {
			continue // nobody here makes such a name
		}
		is, err := digest(ctx, revision.Namespace, ref)
		if err != nil {
			return "", err
		}
		if is != digestThen {
			replaced.Insert(ref.Kind + "/" + ref.Name)
		}
	}
	return strings.Join(sets.List(replaced), ","), nil
}
