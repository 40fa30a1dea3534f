// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/report"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/internal/standing"
)

// Wanted returns the revision of a stack that a cluster is to have now, "" for none, and its add-ons.
type Wanted func(clusterAddon *addonsv1.ClusterAddon) (revision string, addons []addonsv1.Addon)

// Count writes status.clusters, and returns the condition ClustersReady. A Cluster counts once it is selected: else a new stack would be
// Ready before anything was done. It also returns when to count again, as something has lasted for too long then; 0 for never.
func Count(s *addonsv1.AddonStack, of *Selected, wanted Wanted, now time.Time) (c metav1.Condition, again time.Duration) {
	had, counts := hadClusters(s), &addonsv1.ClusterCounts{Total: int32(len(of.Clusters))}
	if s.Status.Clusters = counts; s.Spec.Rollout != nil {
		counts.Unstarted = new(int32)
	}
	causes := standing.Causes{}
	var held, leftOut []string
	for _, each := range of.Clusters {
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
		add(counts, state)
		for _, cause := range why {
			if left := cause.ToldIn(now); left > 0 {
				again = retry.Sooner(again, left)
				continue
			}
			causes.Add(ca.Name, cause)
		}
	}
	c = report.ClustersReady(counts, causes.Describe())
	if counts.Total == 0 {
		c.Message = stack.Unmatched(s.Namespace, of.Spec, of.Members)
		if had {
			c.Status = metav1.ConditionFalse
		}
	}
	if len(held) > 0 {
		c.Message += ". Held at the revision that they have: " + message.Clusters(held)
	}
	if len(leftOut) > 0 {
		c = report.Condition(c.Type, metav1.ConditionFalse, addonsv1.TooManyStacksReason, fmt.Sprintf(
			"%s: %d AddonStacks run there, as many as a cluster can, and this one is left out. Put the add-ons of several AddonStacks into one, "+
				"or have one of them select other clusters. Beside that, %s", message.Clusters(leftOut), stack.MaxOfCluster, c.Message))
	}
	if text := heldRemovals(s, of.All); text != "" {
		if counts.Failed > 0 {
			text += ". Beside that, " + c.Message
		}
		c = report.Condition(c.Type, metav1.ConditionFalse, addonsv1.RemovalHeldReason, text)
	}
	return c, again
}

// add counts one cluster.
func add(counts *addonsv1.ClusterCounts, state standing.State) {
	switch state {
	case standing.Ready:
		counts.Ready++
	case standing.Waiting:
		counts.Waiting++
	case standing.Failed:
		counts.Failed++
	case standing.Progressing:
	}
}

// hadClusters reports whether the stack selected a Cluster last time, or has had none since it did.
func hadClusters(s *addonsv1.AddonStack) bool {
	if s.Status.Clusters != nil && s.Status.Clusters.Total > 0 {
		return true
	}
	c := conditions.Get(s, addonsv1.ClustersReadyCondition)
	return c != nil && c.Status == metav1.ConditionFalse
}
