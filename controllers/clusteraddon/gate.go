// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// clusterOf returns the ClusterAddon's Cluster, nil if there is none in the
// scope of this instance.
func (r *Reconciler) clusterOf(ctx context.Context, ca *addonsv1.ClusterAddon) (*clusterv1.Cluster, error) {
	cluster := &clusterv1.Cluster{}
	key := client.ObjectKey{Namespace: ca.Namespace, Name: ca.Spec.ClusterName}
	if err := r.Client.Get(ctx, key, cluster); err != nil {
		if err = client.IgnoreNotFound(err); err != nil {
			return nil, fmt.Errorf("reading Cluster %s: %w", key, err)
		}
		return nil, nil
	}
	return cluster, nil
}

// gate says whether nothing may be done on the cluster now, and why: in the
// conditions Deleting, Paused and ControlPlaneInitialized.
func gate(ca *addonsv1.ClusterAddon, cluster *clusterv1.Cluster) bool {
	deleting := deletingCondition(ca, cluster)
	paused := pausedCondition(ca, cluster)
	controlPlane := controlPlaneCondition(ca, cluster)
	conditions.Set(ca, deleting)
	conditions.Set(ca, paused)
	conditions.Set(ca, controlPlane)
	return deleting.Status == metav1.ConditionTrue ||
		paused.Status == metav1.ConditionTrue ||
		controlPlane.Status != metav1.ConditionTrue
}

func deletingCondition(ca *addonsv1.ClusterAddon, cluster *clusterv1.Cluster) metav1.Condition {
	c := metav1.Condition{Type: addonsv1.DeletingCondition, Status: metav1.ConditionTrue, Reason: addonsv1.DeletingReason}
	switch {
	case cluster != nil && !cluster.DeletionTimestamp.IsZero():
		c.Message = fmt.Sprintf("Cluster %s is being deleted; its add-ons are left as they are", cluster.Name)
	case !ca.DeletionTimestamp.IsZero():
		c.Message = "This ClusterAddon is being deleted; the add-ons are left as they are"
	default:
		c.Status, c.Reason = metav1.ConditionFalse, addonsv1.NotDeletingReason
	}
	return c
}

func pausedCondition(ca *addonsv1.ClusterAddon, cluster *clusterv1.Cluster) metav1.Condition {
	c := metav1.Condition{Type: addonsv1.PausedCondition, Status: metav1.ConditionTrue, Reason: addonsv1.PausedReason}
	switch {
	case cluster != nil && ptr.Deref(cluster.Spec.Paused, false):
		c.Message = fmt.Sprintf("spec.paused of Cluster %s is true; its add-ons are left as they are", cluster.Name)
	case annotations.HasPaused(ca):
		c.Message = "Annotation cluster.x-k8s.io/paused is set; the add-ons are left as they are"
	default:
		c.Status, c.Reason = metav1.ConditionFalse, addonsv1.NotPausedReason
	}
	return c
}

func controlPlaneCondition(ca *addonsv1.ClusterAddon, cluster *clusterv1.Cluster) metav1.Condition {
	c := metav1.Condition{Type: addonsv1.ControlPlaneInitializedCondition, Status: metav1.ConditionFalse}
	switch {
	case cluster == nil:
		c.Reason = addonsv1.ClusterNotFoundReason
		c.Message = fmt.Sprintf("Cluster %s doesn't exist, or isn't in the scope of this instance", ca.Spec.ClusterName)
	case !ptr.Deref(cluster.Status.Initialization.ControlPlaneInitialized, false):
		c.Reason = addonsv1.ControlPlaneNotInitializedReason
		c.Message = fmt.Sprintf("Waiting for status.initialization.controlPlaneInitialized of Cluster %s", cluster.Name)
	default:
		c.Status, c.Reason = metav1.ConditionTrue, addonsv1.ControlPlaneInitializedReason
	}
	return c
}
