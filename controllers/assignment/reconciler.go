// SPDX-License-Identifier: Apache-2.0

// Package assignment makes one ClusterAddon for each Cluster, and writes into
// it which revision of which AddonStack the cluster is to run.
package assignment

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/annotations"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// conflictDelay is how long the cache may take to show a write that won.
const conflictDelay = 100 * time.Millisecond

// Reconciler assigns AddonStacks to Clusters.
type Reconciler struct {
	Client   client.Client
	Recorder events.EventRecorder
}

// Reconcile brings the ClusterAddon of one Cluster up to date. A paused Cluster
// keeps the assignment it has; the ClusterAddon of a deleted one goes with its
// owner.
func (r *Reconciler) Reconcile(ctx context.Context, req mcreconcile.Request) (ctrl.Result, error) {
	cluster := &clusterv1.Cluster{}
	if err := r.Client.Get(ctx, req.NamespacedName, cluster); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !cluster.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	existing, err := r.existing(ctx, cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	if existing != nil && annotations.IsPaused(cluster, existing) {
		return ctrl.Result{}, nil
	}
	stacks, err := r.candidates(ctx, cluster.Namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	var assigned []addonsv1.StackRevision
	if existing != nil {
		assigned = existing.Spec.Stacks
	}
	return r.write(ctx, cluster, existing, assign(cluster, stacks, assigned))
}

func (r *Reconciler) existing(ctx context.Context, cluster *clusterv1.Cluster) (*addonsv1.ClusterAddon, error) {
	ca := &addonsv1.ClusterAddon{}
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(cluster), ca); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return ca, nil
}

// write makes or patches the ClusterAddon, if it isn't as wanted.
func (r *Reconciler) write(ctx context.Context, cluster *clusterv1.Cluster, existing *addonsv1.ClusterAddon, stacks []addonsv1.StackRevision) (ctrl.Result, error) {
	if existing == nil {
		ca := &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name}}
		shape(ca, cluster, stacks)
		if err := r.Client.Create(ctx, ca); err != nil {
			return retryConflict(cluster, err)
		}
		r.Recorder.Eventf(ca, cluster, corev1.EventTypeNormal, "ClusterAddonCreated", "Assign", "Created for Cluster %s", cluster.Name)
		return ctrl.Result{}, nil
	}
	if !existing.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // its end is an event, and the next one is made then
	}
	wanted := existing.DeepCopy()
	shape(wanted, cluster, stacks)
	if equality.Semantic.DeepEqual(wanted, existing) {
		return ctrl.Result{}, nil
	}
	if err := r.Client.Patch(ctx, wanted, client.MergeFromWithOptions(existing, client.MergeFromWithOptimisticLock{})); err != nil {
		return retryConflict(cluster, err)
	}
	return ctrl.Result{}, nil
}

// shape sets what this controller owns of a ClusterAddon.
func shape(ca *addonsv1.ClusterAddon, cluster *clusterv1.Cluster, stacks []addonsv1.StackRevision) {
	if ca.Labels == nil {
		ca.Labels = map[string]string{}
	}
	ca.Labels[clusterv1.ClusterNameLabel] = cluster.Name
	if filter, ok := cluster.Labels[clusterv1.WatchLabel]; ok {
		ca.Labels[clusterv1.WatchLabel] = filter
	} else {
		delete(ca.Labels, clusterv1.WatchLabel)
	}
	ca.OwnerReferences = util.EnsureOwnerRef(ca.OwnerReferences, metav1.OwnerReference{
		APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: cluster.Name, UID: cluster.UID,
	})
	if ca.Spec.ClusterName == "" {
		ca.Spec.ClusterName = cluster.Name
	}
	ca.Spec.Stacks = stacks
}

// retryConflict turns a lost race into another try: it says nothing to a user.
func retryConflict(cluster *clusterv1.Cluster, err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	return ctrl.Result{}, fmt.Errorf("writing the ClusterAddon of Cluster %s: %w", cluster.Name, err)
}
