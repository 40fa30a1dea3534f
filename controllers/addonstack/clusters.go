// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// count sums up the stack's clusters in status.clusters and ClustersReady, and returns them. A
// Cluster counts once it is selected: else a new stack would be Ready before anything was done. It also returns when to
// count again, as something has lasted for too long then; 0 for never.
func (r *Reconciler) count(ctx context.Context, s *addonsv1.AddonStack, spec *addonsv1.AddonStackSpec) (_ []*addonsv1.ClusterAddon, again time.Duration, _ error) {
	selected, clusters, all, err := r.selected(ctx, s, spec)
	if err != nil {
		return nil, 0, err
	}
	had, now := hadClusters(s), r.Clock.Now()
	s.Status.Clusters = &addonsv1.ClusterCounts{Total: int32(len(selected))}
	told := causes{}
	for _, ca := range selected {
		state, why := standingOf(ca, s, spec.Addons)
		switch state {
		case ready:
			s.Status.Clusters.Ready++
		case waiting:
			s.Status.Clusters.Waiting++
		case failed:
			s.Status.Clusters.Failed++
		case progressing:
		}
		for _, each := range why {
			if left := each.since.Add(tellAfter).Sub(now); each.urgency == passesByItself && left > 0 {
				again = management.Sooner(again, left)
				continue
			}
			told.add(ca.Name, each)
		}
	}
	c := clustersReady(s.Status.Clusters, told.describe())
	if s.Status.Clusters.Total == 0 {
		c.Message += "; " + describeNumber(clusters)
		if had {
			c.Status = metav1.ConditionFalse
		}
	}
	if held := heldRemovals(s, all); len(held.clusters) > 0 {
		text := held.describe(s)
		if s.Status.Clusters.Failed > 0 {
			text += ". Beside that, " + c.Message
		}
		c = newCondition(c.Type, metav1.ConditionFalse, addonsv1.RemovalHeldReason, text)
		if conditions.GetReason(s, c.Type) != c.Reason {
			r.event(s, corev1.EventTypeWarning, c.Reason, "Assign", c.Message)
		}
	}
	conditions.Set(s, c)
	return selected, again, nil
}

// hadClusters reports whether the stack selected a Cluster last time, or has had none since it did.
func hadClusters(s *addonsv1.AddonStack) bool {
	if s.Status.Clusters != nil && s.Status.Clusters.Total > 0 {
		return true
	}
	c := conditions.Get(s, addonsv1.ClustersReadyCondition)
	return c != nil && c.Status == metav1.ConditionFalse
}

// shownNumber bounds the number of clusters that a message has, so that a stack that selects none isn't written to each
// time that there is a cluster more.
const shownNumber = 10

// describeNumber returns words on how many clusters a namespace has.
func describeNumber(clusters int) string {
	switch {
	case clusters == 0:
		return "the namespace has none"
	case clusters == 1:
		return "the namespace has 1 cluster"
	case clusters > shownNumber:
		return fmt.Sprintf("the namespace has more than %d clusters", shownNumber)
	}
	return fmt.Sprintf("the namespace has %d clusters", clusters)
}

// selected returns the ClusterAddon of each Cluster that the spec selects, one
// without a spec where there is none yet; the number of clusters, and all ClusterAddons of the namespace.
func (r *Reconciler) selected(ctx context.Context, s *addonsv1.AddonStack, spec *addonsv1.AddonStackSpec) (selected []*addonsv1.ClusterAddon, number int, all *addonsv1.ClusterAddonList, err error) {
	clusters, err := r.Members.List(ctx, s.Namespace)
	if err != nil {
		return nil, 0, nil, err
	}
	all = &addonsv1.ClusterAddonList{}
	if err := r.Client.List(ctx, all, client.InNamespace(s.Namespace), client.UnsafeDisableDeepCopy); err != nil { // they are only read
		return nil, 0, nil, fmt.Errorf("listing ClusterAddons of namespace %s: %w", s.Namespace, err)
	}
	of := map[string]*addonsv1.ClusterAddon{}
	for i := range all.Items {
		of[all.Items[i].Name] = &all.Items[i]
	}
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		if selects, err := stack.Selects(s.Namespace, spec, clusters[name]); err != nil || !selects {
			continue // a revision's selector was valid when it was kept
		}
		ca := of[name]
		if ca == nil {
			ca = &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Name: name}}
			if clusters[name].Paused { // from the start
				conditions.Set(ca, newCondition(addonsv1.PausedCondition, metav1.ConditionTrue, addonsv1.PausedReason, ""))
			}
		}
		selected = append(selected, ca)
	}
	return selected, len(clusters), all, nil
}

// clustersReady makes the ClustersReady condition. Its length doesn't grow with
// the fleet: the first causes, as [causes.describe] returns them, stand for all.
func clustersReady(counts *addonsv1.ClusterCounts, why []string) metav1.Condition {
	const kind = addonsv1.ClustersReadyCondition
	c := newCondition(kind, metav1.ConditionFalse, addonsv1.ClustersProgressingReason, fmt.Sprintf("%d of %d clusters are ready", counts.Ready, counts.Total))
	switch {
	case counts.Total == 0:
		return newCondition(kind, metav1.ConditionTrue, addonsv1.NoClusterMatchesReason,
			"No Cluster of this namespace matches spec.clusterSelector, spec.classNames and spec.clusterKinds")
	case counts.Failed > 0:
		c.Reason, c.Message = addonsv1.ClustersFailedReason, fmt.Sprintf("%d of %d clusters failed", counts.Failed, counts.Total)
	case counts.Ready == counts.Total:
		c.Status, c.Reason = metav1.ConditionTrue, addonsv1.ClustersReadyReason
	case counts.Waiting > 0:
		c.Message += fmt.Sprintf("; %d can't be worked on now", counts.Waiting)
	}
	if len(why) > 0 {
		c.Message += ". " + firstOf(why)
	}
	return c
}
