// SPDX-License-Identifier: Apache-2.0

// Package assignment makes one ClusterAddon for each cluster, with the stacks that it is to run.
package assignment

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/assignment/candidate"
	"github.com/cluster-chandler/chandler/controllers/assignment/missing"
	"github.com/cluster-chandler/chandler/controllers/assignment/removal"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// Reconciler assigns AddonStacks to clusters.
type Reconciler struct {
	Client client.Client
	// APIReader reads what may be outside of the scope of the cache.
	APIReader client.Reader
	Members   *member.Inventory
	Recorder  events.EventRecorder
	Clock     clock.Clock

	// Turns are given by the rollouts of AddonStacks.
	Turns *management.Turns

	// Missing remembers AddonStacks, and Guard holds removals.
	Missing *missing.Stacks
	Guard   *removal.Guard

	queue     management.Queue
	snapshots candidate.Snapshots
}

// Reconcile brings one ClusterAddon up to date. A paused cluster keeps its assignment, but for the policies of stacks. The
// ClusterAddon of a deleted one is deleted with its owner.
func (r *Reconciler) Reconcile(ctx context.Context, req mcreconcile.Request) (ctrl.Result, error) {
	ca := &addonsv1.ClusterAddon{} // without a name while there is none
	if err := r.Client.Get(ctx, req.NamespacedName, ca); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	cluster, err := r.Members.Get(ctx, req.NamespacedName)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case cluster == nil:
		return r.withoutCluster(ctx, ca)
	case cluster.Deleting:
		return ctrl.Result{}, nil
	case ca.Name != "" && !equality.Semantic.DeepEqual(ca.Spec.ClusterRef, cluster.Reference()):
		r.nameTaken(ca, cluster)
		return ctrl.Result{}, nil
	case ca.Name == "" && cluster.Paused:
		// clusterctl takes ClusterAddons away from, and brings them to, paused
		// Clusters: one that is made meanwhile would be in its way.
		return management.Retry(ctx, ctrl.Result{}, r.takeOver(ctx, cluster))
	}
	stacks, soon, err := r.candidates(ctx, cluster.Namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	r.Missing.Present(cluster.Namespace, stacks)
	stored := ca
	if ca = r.asWritten(stored, stacks); ca.Name != "" && candidate.IsPaused(cluster, ca) { // nothing else changes
		return management.Retry(ctx, ctrl.Result{}, r.patch(ctx, stored, ca, cluster))
	}
	stay, again, err := r.absent(ctx, ca, stacks)
	if err != nil {
		return ctrl.Result{}, err
	}
	result := ctrl.Result{RequeueAfter: soon}
	if again {
		result.RequeueAfter = retry.Sooner(soon, retry.Moment)
	}
	p := &removal.Plan{Cluster: cluster, ClusterAddon: ca, Stored: stored, Candidates: stacks, Wanted: append(candidate.Assign(cluster, stacks, ca), stay...)}
	if err := r.Guard.Hold(ctx, p); err != nil {
		return ctrl.Result{}, err
	}
	result.RequeueAfter = retry.Sooner(result.RequeueAfter, p.Again)
	if candidate.IsUnreported(ca, r.Clock.Now()) {
		result.RequeueAfter = retry.Sooner(result.RequeueAfter, candidate.FirstReport)
	}
	return management.Retry(ctx, result, r.write(ctx, p))
}
