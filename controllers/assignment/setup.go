// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/assignment/candidate"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=addons.cluster.x-k8s.io,resources=addonstacks,verbs=get;list;watch
// +kubebuilder:rbac:groups=addons.cluster.x-k8s.io,resources=clusteraddons,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=addons.cluster.x-k8s.io,resources=clusteraddons/spec,verbs=assign
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager adds the controller to the manager.
func (r *Reconciler) SetupWithManager(mgr mcmanager.Manager, workers int) error {
	r.Members.Subscribe(r.queue.Add)
	r.Turns.Notify = r.queue.Add
	return management.NewController(mgr, "assignment", "ClusterAddon", workers).
		For(&clusterv1.Cluster{}, management.WatchManagementCluster(), management.SkipWorkloadClusters(), management.SpecChanged()).
		Watches(&addonsv1.ClusterAddon{}, management.Map(management.SameName), management.WatchManagementCluster(), management.SkipWorkloadClusters(), management.SpecChanged(management.Updated(areOrphansTold), management.Updated(isReported))).
		Watches(&addonsv1.AddonStack{}, management.Map(r.clustersOfNamespace), management.WatchManagementCluster(), management.SkipWorkloadClusters(), management.SpecChanged(management.Updated(r.isFound))).
		Watches(&appsv1.ControllerRevision{}, management.Map(r.clustersOfNamespace), management.WatchManagementCluster(), management.SkipWorkloadClusters()).
		WatchesRawSource(&r.queue).
		Complete(r)
}

// isFound passes when a stack whose newest revision was lost names another one. Otherwise the event of the revision itself
// came before, and clusters were decided on.
func (r *Reconciler) isFound(before, after *addonsv1.AddonStack) bool {
	if before.Status.LatestRevision == "" || before.Status.LatestRevision == after.Status.LatestRevision {
		return false
	}
	key := client.ObjectKey{Namespace: before.Namespace, Name: before.Status.LatestRevision}
	return r.Client.Get(context.Background(), key, &appsv1.ControllerRevision{}) != nil // of the cache
}

// isReported passes when a new ClusterAddon says what its cluster runs.
func isReported(before, after *addonsv1.ClusterAddon) bool {
	return !candidate.HasReported(before) && candidate.HasReported(after)
}

// areOrphansTold passes when a cluster was told of a stack that it leaves its add-ons behind.
func areOrphansTold(before, after *addonsv1.ClusterAddon) bool {
	return slices.ContainsFunc(after.Spec.Stacks, func(s addonsv1.StackRevision) bool {
		return stack.LeavesAddons(after, s.Name) && !stack.LeavesAddons(before, s.Name)
	})
}

// clustersOfNamespace enqueues every cluster that a stack, or a revision of one, may concern. Deciding needs no request.
// What is written in the stack is noted first.
func (r *Reconciler) clustersOfNamespace(ctx context.Context, obj client.Object) []client.ObjectKey {
	if s, ok := obj.(*addonsv1.AddonStack); ok {
		r.Missing.Note(s)
	}
	clusters, err := r.Members.List(ctx, obj.GetNamespace())
	if err != nil {
		return nil // the cache is synced before events are handed on
	}
	keys := make([]client.ObjectKey, 0, len(clusters))
	for name := range clusters {
		keys = append(keys, client.ObjectKey{Namespace: obj.GetNamespace(), Name: name})
	}
	return keys
}
