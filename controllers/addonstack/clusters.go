// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// clusterState is where a cluster is with the stack's newest revision.
type clusterState int

const (
	progressing clusterState = iota
	ready
	failed
	waiting
)

// count sums up the stack's clusters in status.clusters and ClustersReady, and returns them. A
// Cluster counts once it is selected: else a new stack would be Ready before anything was done.
func (r *Reconciler) count(ctx context.Context, s *addonsv1.AddonStack, spec *addonsv1.AddonStackSpec) ([]*addonsv1.ClusterAddon, error) {
	selected, all, err := r.selected(ctx, s, spec)
	if err != nil {
		return nil, err
	}
	had := hadClusters(s)
	s.Status.Clusters = &addonsv1.ClusterCounts{Total: int32(len(selected))}
	failures := causes{}
	for i := range selected {
		switch state, culprit := stateOf(selected[i], s, spec.Addons); state {
		case ready:
			s.Status.Clusters.Ready++
		case waiting:
			s.Status.Clusters.Waiting++
		case failed:
			s.Status.Clusters.Failed++
			failures.add(selected[i].Name, culprit)
		case progressing:
		}
	}
	c := clustersReady(s.Status.Clusters, failures.describe())
	if s.Status.Clusters.Total == 0 && had {
		c.Status = metav1.ConditionFalse
	}
	if held := heldRemovals(s, all); len(held.clusters) > 0 {
		c = newCondition(c.Type, metav1.ConditionFalse, addonsv1.RemovalHeldReason, held.describe(s))
		if conditions.GetReason(s, c.Type) != c.Reason {
			r.event(s, corev1.EventTypeWarning, c.Reason, "Assign", c.Message)
		}
	}
	conditions.Set(s, c)
	return selected, nil
}

// hadClusters reports whether the stack selected a Cluster last time, or has had none since it did.
func hadClusters(s *addonsv1.AddonStack) bool {
	if s.Status.Clusters != nil && s.Status.Clusters.Total > 0 {
		return true
	}
	c := conditions.Get(s, addonsv1.ClustersReadyCondition)
	return c != nil && c.Status == metav1.ConditionFalse
}

// selected returns the ClusterAddon of each Cluster that the spec selects, an
// empty one where there is none yet; and all ClusterAddons of the namespace.
func (r *Reconciler) selected(ctx context.Context, s *addonsv1.AddonStack, spec *addonsv1.AddonStackSpec) (selected []*addonsv1.ClusterAddon, all *addonsv1.ClusterAddonList, err error) {
	clusters, err := r.Members.List(ctx, s.Namespace)
	if err != nil {
		return nil, nil, err
	}
	all = &addonsv1.ClusterAddonList{}
	if err := r.Client.List(ctx, all, client.InNamespace(s.Namespace), client.UnsafeDisableDeepCopy); err != nil { // they are only read
		return nil, nil, fmt.Errorf("listing ClusterAddons of namespace %s: %w", s.Namespace, err)
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
			ca = &addonsv1.ClusterAddon{}
		}
		selected = append(selected, ca)
	}
	return selected, all, nil
}

// stateOf decides from a ClusterAddon's status where its cluster is with the stack, which has
// these add-ons. Of a failed cluster it returns the add-on that failed.
func stateOf(ca *addonsv1.ClusterAddon, s *addonsv1.AddonStack, addons []addonsv1.Addon) (clusterState, *addonsv1.AddonStatus) {
	for _, blocking := range []string{addonsv1.ControlPlaneInitializedCondition, addonsv1.ClusterReachableCondition} {
		if c := conditions.Get(ca, blocking); c != nil && c.Status != metav1.ConditionTrue {
			return waiting, nil
		}
	}
	if conditions.IsTrue(ca, addonsv1.PausedCondition) || conditions.IsTrue(ca, addonsv1.DeletingCondition) {
		return waiting, nil
	}
	assigned := stack.AssignedRevision(ca.Spec.Stacks, s.Name)
	if !slices.Contains(ca.Status.Stacks, addonsv1.StackStatus{Name: s.Name, Revision: assigned}) {
		return progressing, nil // what the status says is of another revision
	}
	missing, allReady := stack.Presences(addons), true
	maps.DeleteFunc(missing, func(_ string, present addonsv1.Present) bool { return present != addonsv1.PresentAlways }) // in the status if wanted
	for i := range ca.Status.Addons {
		addon := &ca.Status.Addons[i]
		if addon.Stack != s.Name {
			continue
		}
		delete(missing, addon.Namespace+"/"+addon.Name)
		if addon.Phase == addonsv1.AddonFailed {
			return failed, addon
		}
		allReady = allReady && addon.Phase == addonsv1.AddonReady
	}
	if allReady && len(missing) == 0 && assigned == s.Status.LatestRevision {
		return ready, nil
	}
	return progressing, nil
}

// clustersReady makes the ClustersReady condition. Its length doesn't grow with
// the fleet: the first failures, as [causes.describe] returns them, stand for all.
func clustersReady(counts *addonsv1.ClusterCounts, failures []string) metav1.Condition {
	const kind = addonsv1.ClustersReadyCondition
	readyOfAll := fmt.Sprintf("%d of %d clusters are ready", counts.Ready, counts.Total)
	switch {
	case counts.Total == 0:
		return newCondition(kind, metav1.ConditionTrue, addonsv1.NoClusterMatchesReason,
			"No Cluster of this namespace matches spec.clusterSelector, spec.classNames and spec.clusterKinds")
	case counts.Failed > 0:
		return newCondition(kind, metav1.ConditionFalse, addonsv1.ClustersFailedReason,
			fmt.Sprintf("%d of %d clusters failed. %s", counts.Failed, counts.Total, firstOf(failures)))
	case counts.Ready == counts.Total:
		return newCondition(kind, metav1.ConditionTrue, addonsv1.ClustersReadyReason, readyOfAll)
	case counts.Waiting > 0:
		readyOfAll += fmt.Sprintf("; %d can't be worked on now, see their ClusterAddons", counts.Waiting)
	}
	return newCondition(kind, metav1.ConditionFalse, addonsv1.ClustersProgressingReason, readyOfAll)
}
