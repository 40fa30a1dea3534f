// SPDX-License-Identifier: Apache-2.0

package standing

import (
	"cmp"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// Reasons why nothing can be done on a cluster, beside those of its conditions.
const (
	// HeldReason says that it is kept out of changes, by its annotation.
	HeldReason = "Held"
	// NothingToGoBackToReason says that the revision was rejected, and no other one is known that the cluster had.
	NothingToGoBackToReason = "NothingToGoBackTo"
)

// Cluster is a cluster that a stack selects.
type Cluster struct {
	*addonsv1.ClusterAddon // one without a spec where there is none yet
	Labels                 labels.Set
	// Joined is when the cluster became one of the fleet; zero for just now.
	Joined time.Time
}

// Select returns the members of a namespace that the spec of a stack there selects, in the order of their names.
func Select(namespace string, spec *addonsv1.AddonStackSpec, members map[string]*member.Member, addons []addonsv1.ClusterAddon) (selected []Cluster) {
	of := map[string]*addonsv1.ClusterAddon{}
	for i := range addons {
		of[addons[i].Name] = &addons[i]
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		m, ca := members[name], of[name]
		if selects, err := stack.Selects(namespace, spec, m); err != nil || !selects {
			continue // a revision's selector was valid when it was kept
		}
		if ca == nil {
			ca = &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Name: name}}
			if m.Paused { // from the start
				conditions.Set(ca, metav1.Condition{Type: addonsv1.PausedCondition, Status: metav1.ConditionTrue, Reason: addonsv1.PausedReason})
			}
		}
		is := Cluster{ClusterAddon: ca, Labels: m.Labels, Joined: ca.CreationTimestamp.Time}
		if m.Cluster != nil { // its ClusterAddon may have been made again
			is.Joined = m.Cluster.CreationTimestamp.Time
		}
		selected = append(selected, is)
	}
	return selected
}

// cluster returns what the decision is to know of a cluster. Its status may be about another revision than it is to have.
func (q *Rollout) cluster(of Cluster) rollout.Cluster {
	ca := of.ClusterAddon
	is := *stack.StatusOf(&ca.Status, q.Stack.Name)
	c := rollout.Cluster{Name: ca.Name, Labels: of.Labels, Joined: of.Joined, Assigned: q.Assigned(ca), WasReady: true}
	if q.Target >= 0 {
		c.GoesBackTo = rollout.GoesBackTo(q.Marked, q.Target, is)
	}
	isRejected := q.Target >= 0 && q.Marked[q.Target].Rejected
	hasTarget := c.Assigned == q.Revision()
	c.Away = q.whyAway(ca, hasTarget != isRejected)
	if isRejected && hasTarget && c.GoesBackTo == "" {
		c.Away = NothingToGoBackToReason
	}
	if b := stack.Blocking(ca); b != nil {
		c.Away, c.Unreachable, c.AwaySince = b.Reason, b.Type == addonsv1.ClusterReachableCondition, b.LastTransitionTime.Time
		c.Unseen = c.Unreachable && b.Status == metav1.ConditionUnknown
	}
	switch {
	case is.Name == "":
		c.State = addonsv1.StackProgressing
	case is.Revision == c.Assigned:
		c.State, c.Since, c.Started, c.WasReady = is.State, is.Since.Time, is.Started.Time, ptr.Deref(is.WasReady, true)
		if state, _ := Of(ca, q.Stack.Name, c.Assigned, q.Addons(c.Assigned)); c.State == addonsv1.StackReady && state == Progressing {
			if b := conditions.Get(ca, addonsv1.AddonsReadyCondition); b != nil && b.Status == metav1.ConditionUnknown {
				c.Away = cmp.Or(c.Away, b.Reason) // as one that falls silent after it was ready
			} else {
				c.State = addonsv1.StackProgressing // an add-on isn't in the status yet
			}
		}
	default:
		wasReady, _ := rollout.Leave(is, c.Assigned)
		c.WasReady = ptr.Deref(wasReady, true)
		if c.State = is.State; hasTarget || isRejected {
			c.State = addonsv1.StackProgressing
		}
	}
	return c
}

// whyAway returns why nothing can be done on a cluster that can be worked on, "" if something can. One that was given what
// the rollout brings isn't held any more.
func (q *Rollout) whyAway(ca *addonsv1.ClusterAddon, arrives bool) string {
	is := stack.Assigned(ca.Spec.Stacks, q.Stack.Name)
	switch {
	case is.HeldRemoval != nil && is.Revision != q.Aim(ca): // also if it is its turn
		return addonsv1.RemovalHeldReason
	case arrives && slices.ContainsFunc(ca.Status.Addons, q.waitsForUpgrade):
		return reasons.WaitingForUpgrade
	case arrives:
		return ""
	case rollout.IsHeld(ca, q.Stack.Name):
		return HeldReason
	}
	return ""
}

// waitsForUpgrade reports whether an add-on of the stack waits for an upgrade of the cluster's Kubernetes.
func (q *Rollout) waitsForUpgrade(a addonsv1.AddonStatus) bool {
	return a.Stack == q.Stack.Name && slices.Contains([]string{reasons.WaitingForControlPlane, reasons.WaitingForWorkers, reasons.WaitingForUpgrade}, a.Reason)
}
