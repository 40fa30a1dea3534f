// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/internal/member"
)

// withoutCluster deletes the ClusterAddon of a cluster that is gone and was no object: no owner
// takes it along. Nothing is uninstalled. While the source hasn't looked yet, nothing is known.
func (r *Reconciler) withoutCluster(ctx context.Context, ca *addonsv1.ClusterAddon) (ctrl.Result, error) {
	if ca == nil || ca.Spec.ClusterRef == nil || member.IsObject(ca.Spec.ClusterRef.Kind) || !ca.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	switch r.Members.Absence(ca.Spec.ClusterRef.Kind) {
	case member.Foreign:
		return ctrl.Result{}, nil
	case member.Unsettled:
		return ctrl.Result{RequeueAfter: member.SettleRetry}, nil
	case member.Gone:
	}
	options := client.Preconditions{UID: &ca.UID, ResourceVersion: &ca.ResourceVersion}
	err := r.Client.Delete(ctx, ca, options)
	return management.Retry(ctx, ctrl.Result{}, wrap(err, "deleting the ClusterAddon of %s %s", ca.Spec.ClusterRef.Kind, ca.Spec.ClusterRef.Name))
}

// nameTaken tells that a cluster gets no add-ons, as the name of its ClusterAddon is that of another's.
func (r *Reconciler) nameTaken(ca *addonsv1.ClusterAddon, cluster *member.Member) {
	r.Recorder.Eventf(ca, cluster.Object(), corev1.EventTypeWarning, "NameTaken", "Assign",
		"%s would have a ClusterAddon of this name, too, and so gets none: rename one of them", cluster)
}
