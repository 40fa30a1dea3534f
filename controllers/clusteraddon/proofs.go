// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"

	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/internal/deliver"
)

// proofsOf returns the proofs in the status of a cluster's ClusterAddon.
func (r *Reconciler) proofsOf(ctx context.Context, name multicluster.ClusterName) map[deliver.Release]string {
	key, _ := r.Members.Names.ClusterAddon(name)
	ca := &addonsv1.ClusterAddon{}
	if err := r.Client.Get(ctx, key, ca); err != nil {
		return nil // it is gone, or is yet to be seen: nothing is proven
	}
	return releases.ProofsIn(ca, ca.UID)
}
