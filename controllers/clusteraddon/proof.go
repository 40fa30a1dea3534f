// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"

	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
)

// restoreProofs takes the proofs from the status, but for those that this process knows better.
func (q *clusterRun) restoreProofs() {
	q.memory.proofs.restore(q.stored, q.ca.UID)
	q.proofs = q.memory.proofs.written
}

// proofsOf returns the proofs in the status of a cluster's ClusterAddon.
func (r *Reconciler) proofsOf(ctx context.Context, name multicluster.ClusterName) map[deliver.Release]string {
	key, _ := r.Members.Names.ClusterAddon(name)
	ca := &addonsv1.ClusterAddon{}
	if err := r.Client.Get(ctx, key, ca); err != nil {
		return nil // it is gone, or is yet to be seen: nothing is proven
	}
	return proofsIn(ca, ca.UID)
}

// proofOf returns the proof of the release's record, "" if this ClusterAddon has none.
func (q *clusterRun) proofOf(release deliver.Release) string { return q.proofs[release] }

// isProven reports whether a record is as it was written for this ClusterAddon.
func (q *clusterRun) isProven(record deliver.Summary) bool {
	return record.IsProvenBy(q.proofOf(record.Release))
}

// noteProof keeps the proof of a release's record. "" says that the record isn't as it was written.
func (q *clusterRun) noteProof(release deliver.Release, proof string) {
	q.proofs[release] = proof
}

// reportProofs writes the proofs into the statuses of the add-ons, and forgets all others.
func (q *clusterRun) reportProofs() {
	reported := map[deliver.Release]string{}
	for i := range q.ca.Status.Addons {
		a := &q.ca.Status.Addons[i]
		release := deliver.Release{Namespace: a.Namespace, Name: a.Name}
		a.RecordDigest = q.proofOf(release)
		reported[release] = a.RecordDigest
	}
	q.proofs, q.memory.proofs.written = reported, reported
}
