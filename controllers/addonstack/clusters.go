// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/internal/standing"
)

// wantedRevision returns the revision of a stack that a cluster is to have now, "" for none, and its add-ons.
type wantedRevision func(clusterAddon *addonsv1.ClusterAddon) (revision string, addons []addonsv1.Addon)

// count sums up the stack's clusters in status.clusters and ClustersReady. A Cluster counts once it is selected: else a
// new stack would be Ready before anything was done. It returns when to count again, as something has lasted for too
// long then; 0 for never.
func (r *Reconciler) count(s *addonsv1.AddonStack, clusters *selectedClusters, wanted wantedRevision) (again time.Duration) {
	had, now := hadClusters(s), r.Clock.Now()
	counts := &addonsv1.ClusterCounts{Total: int32(len(clusters.selected))}
	if s.Status.Clusters = counts; s.Spec.Rollout != nil {
		counts.Unstarted = new(int32)
	}
	told := standing.Causes{}
	var held, leftOut []string
	for _, each := range clusters.selected {
		ca := each.ClusterAddon
		if rollout.IsHeld(ca, s.Name) {
			held = append(held, ca.Name)
		}
		if stack.IsLeftOut(ca, s.Name) {
			leftOut = append(leftOut, ca.Name)
		}
		revision, addons := wanted(ca)
		if s.Spec.Rollout != nil && revision == "" {
			*counts.Unstarted++
			continue
		}
		state, why := standing.Of(ca, s.Name, revision, addons)
		switch state {
		case standing.Ready:
			counts.Ready++
		case standing.Waiting:
			counts.Waiting++
		case standing.Failed:
			counts.Failed++
		case standing.Progressing:
		}
		for _, cause := range why {
			if left := cause.ToldIn(now); left > 0 {
				again = retry.Sooner(again, left)
				continue
			}
			told.Add(ca.Name, cause)
		}
	}
	c := clustersReady(counts, told.Describe())
	if counts.Total == 0 {
		c.Message = stack.Unmatched(s.Namespace, clusters.spec, clusters.members)
		if had {
			c.Status = metav1.ConditionFalse
		}
	}
	if len(held) > 0 {
		c.Message += ". Held at the revision that they have: " + message.Clusters(held)
	}
	if len(leftOut) > 0 {
		c = newCondition(c.Type, metav1.ConditionFalse, addonsv1.TooManyStacksReason, fmt.Sprintf(
			"%s: %d AddonStacks run there, as many as a cluster can, and this one is left out. Put the add-ons of several AddonStacks into one, "+
				"or have one of them select other clusters. Beside that, %s", message.Clusters(leftOut), stack.MaxOfCluster, c.Message))
	}
	if text := describeHeld(s, clusters.all); text != "" {
		if counts.Failed > 0 {
			text += ". Beside that, " + c.Message
		}
		c = newCondition(c.Type, metav1.ConditionFalse, addonsv1.RemovalHeldReason, text)
		if conditions.GetReason(s, c.Type) != c.Reason {
			r.event(s, corev1.EventTypeWarning, c.Reason, "Assign", c.Message)
		}
	}
	conditions.Set(s, c)
	return again
}

// hadClusters reports whether the stack selected a Cluster last time, or has had none since it did.
func hadClusters(s *addonsv1.AddonStack) bool {
	if s.Status.Clusters != nil && s.Status.Clusters.Total > 0 {
		return true
	}
	c := conditions.Get(s, addonsv1.ClustersReadyCondition)
	return c != nil && c.Status == metav1.ConditionFalse
}

// selectedClusters are those of a stack, and what its namespace has of clusters.
type selectedClusters struct {
	spec    *addonsv1.AddonStackSpec  // that selects
	members map[string]*member.Member // by the names of their ClusterAddons
	all     *addonsv1.ClusterAddonList
	// selected are the clusters that the stack selects.
	selected []standing.Cluster
}

// selectedBy returns the clusters that a spec of the stack selects.
func (r *Reconciler) selectedBy(ctx context.Context, s *addonsv1.AddonStack, spec *addonsv1.AddonStackSpec) (*selectedClusters, error) {
	clusters, err := r.Members.List(ctx, s.Namespace)
	if err != nil {
		return nil, err
	}
	is := &selectedClusters{spec: spec, members: clusters, all: &addonsv1.ClusterAddonList{}}
	if err := r.Client.List(ctx, is.all, client.InNamespace(s.Namespace), client.UnsafeDisableDeepCopy); err != nil { // they are only read
		return nil, fmt.Errorf("listing ClusterAddons of namespace %s: %w", s.Namespace, err)
	}
	is.selected = standing.Select(s.Namespace, spec, clusters, is.all.Items)
	return is, nil
}

// clustersReady makes the ClustersReady condition. Its length doesn't grow with
// the fleet: the first causes, as [standing.Causes.Describe] returns them, stand for all.
func clustersReady(counts *addonsv1.ClusterCounts, why []string) metav1.Condition {
	const kind = addonsv1.ClustersReadyCondition
	c := newCondition(kind, metav1.ConditionFalse, addonsv1.ClustersProgressingReason, fmt.Sprintf("%d of %d clusters are ready", counts.Ready, counts.Total))
	switch {
	case counts.Total == 0:
		return newCondition(kind, metav1.ConditionTrue, addonsv1.NoClusterMatchesReason,
			"No Cluster of this namespace matches spec.clusterSelector, spec.classNames and spec.clusterKinds")
	case counts.Failed > 0:
		c.Reason, c.Message = addonsv1.ClustersFailedReason, fmt.Sprintf("%d of %d clusters failed", counts.Failed, counts.Total)
	case counts.Ready+ptr.Deref(counts.Unstarted, 0) == counts.Total:
		c.Status, c.Reason = metav1.ConditionTrue, addonsv1.ClustersReadyReason
	case counts.Waiting > 0:
		c.Message += fmt.Sprintf("; %d can't be worked on now", counts.Waiting)
	}
	if len(why) > 0 {
		c.Message += ". " + firstOf(why)
	}
	return c
}
