// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/member"
)

// Gate reports whether nothing may be done on the cluster now. Three conditions say why.
func Gate(ca *addonsv1.ClusterAddon, cluster *member.Member) bool {
	for _, c := range []metav1.Condition{deletingCondition(ca, cluster), pausedCondition(ca, cluster), controlPlaneCondition(ca, cluster)} {
		conditions.Set(ca, c)
	}
	return Blocks(ca) != nil
}

// Blocks returns the condition because of which nothing is done on the cluster, nil if there is none.
func Blocks(ca *addonsv1.ClusterAddon) *metav1.Condition {
	for _, of := range []string{addonsv1.DeletingCondition, addonsv1.PausedCondition} {
		if conditions.IsTrue(ca, of) {
			return conditions.Get(ca, of)
		}
	}
	if !conditions.IsTrue(ca, addonsv1.ControlPlaneInitializedCondition) {
		return conditions.Get(ca, addonsv1.ControlPlaneInitializedCondition)
	}
	return nil
}

func deletingCondition(ca *addonsv1.ClusterAddon, cluster *member.Member) metav1.Condition {
	c := metav1.Condition{Type: addonsv1.DeletingCondition, Status: metav1.ConditionTrue, Reason: addonsv1.DeletingReason}
	switch {
	case cluster != nil && cluster.Deleting:
		c.Message = fmt.Sprintf("%s is being deleted; its add-ons are left as they are", cluster)
	case !ca.DeletionTimestamp.IsZero():
		c.Message = "This ClusterAddon is being deleted; the add-ons are left as they are"
	default:
		c.Status, c.Reason = metav1.ConditionFalse, addonsv1.NotDeletingReason
	}
	return c
}

func pausedCondition(ca *addonsv1.ClusterAddon, cluster *member.Member) metav1.Condition {
	c := metav1.Condition{Type: addonsv1.PausedCondition, Status: metav1.ConditionTrue, Reason: addonsv1.PausedReason}
	switch {
	case cluster != nil && cluster.Paused:
		c.Message = fmt.Sprintf("spec.paused of Cluster %s is true; its add-ons are left as they are", cluster.Name)
	case annotations.HasPaused(ca):
		c.Message = "Annotation cluster.x-k8s.io/paused is set; the add-ons are left as they are"
	default:
		c.Status, c.Reason = metav1.ConditionFalse, addonsv1.NotPausedReason
	}
	return c
}

func controlPlaneCondition(ca *addonsv1.ClusterAddon, cluster *member.Member) metav1.Condition {
	c := metav1.Condition{Type: addonsv1.ControlPlaneInitializedCondition, Status: metav1.ConditionFalse}
	switch {
	case cluster == nil:
		c.Reason = addonsv1.ClusterNotFoundReason
		c.Message = fmt.Sprintf("%s doesn't exist, or isn't in the scope of this instance", clusterOf(ca))
	case !cluster.Initialized:
		c.Reason = addonsv1.ControlPlaneNotInitializedReason
		c.Message = fmt.Sprintf("Waiting for status.initialization.controlPlaneInitialized of Cluster %s", cluster.Name)
	default:
		c.Status, c.Reason = metav1.ConditionTrue, addonsv1.ControlPlaneInitializedReason
	}
	return c
}

// clusterOf returns the kind and name of a ClusterAddon's cluster.
func clusterOf(ca *addonsv1.ClusterAddon) string {
	if ref := ca.Spec.ClusterRef; ref != nil {
		return ref.Kind + " " + ref.Name
	}
	return addonsv1.KindCluster + " " + ca.Spec.ClusterName
}

// RemovesBeforeDeletion reports whether a Cluster is being deleted and waits for add-ons to be
// removed. A Cluster that moves to another management cluster is deleted here, too, and lives on.
func RemovesBeforeDeletion(ca *addonsv1.ClusterAddon, cluster *member.Member) bool {
	if cluster == nil || cluster.Cluster == nil || !cluster.Deleting || !ca.DeletionTimestamp.IsZero() {
		return false
	}
	object := cluster.Cluster
	_, goesOn := object.Annotations[runtimev1.OkToDeleteAnnotation]
	return ptr.Deref(ca.Status.GatesDeletion, false) && cluster.Initialized && object.Spec.Topology.IsDefined() &&
		!Moves(cluster) && !goesOn && !annotations.IsPaused(object, ca)
}

// Moves reports whether the Cluster is deleted here as it continues in another management cluster.
func Moves(cluster *member.Member) bool {
	if cluster == nil || cluster.Cluster == nil {
		return false
	}
	_, yes := cluster.Cluster.Annotations[clusterctlv1.DeleteForMoveAnnotation]
	return yes
}
