// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
)

// proofs are those of the records that this process wrote last, by release. Each is in the status at the
// end of the reconcile that wrote the record, so losing them costs nothing. They are those of one ClusterAddon:
// another one of its name has run nothing yet.
type proofs struct {
	of      types.UID
	written map[deliver.Release]string
}

// restore takes the proofs from the status, but for those that this process knows better, and returns all.
func (p *proofs) restore(stored *addonsv1.ClusterAddon, uid types.UID) map[deliver.Release]string {
	if p.of != uid {
		*p = proofs{of: uid, written: map[deliver.Release]string{}}
	}
	for release, proof := range proofsIn(stored, uid) {
		if _, newer := p.written[release]; !newer {
			p.written[release] = proof
		}
	}
	return p.written
}

// proofsIn returns the proofs in a ClusterAddon's status, none if that came from a backup.
func proofsIn(stored *addonsv1.ClusterAddon, uid types.UID) map[deliver.Release]string {
	all := map[deliver.Release]string{}
	for i := range stored.Status.Addons {
		if a := &stored.Status.Addons[i]; a.RecordDigest != "" && stored.Status.ObservedUID == uid {
			all[deliver.Release{Namespace: a.Namespace, Name: a.Name}] = a.RecordDigest
		}
	}
	return all
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

// isProven reports whether a record is as it was written for this ClusterAddon.
func (q *clusterRun) isProven(record deliver.Summary) bool {
	return record.IsProvenBy(q.proofs[record.Release])
}

// reportProofs writes the proofs into the statuses of the add-ons, and forgets all others.
func (q *clusterRun) reportProofs() {
	reported := map[deliver.Release]string{}
	for i := range q.ca.Status.Addons {
		a := &q.ca.Status.Addons[i]
		release := deliver.Release{Namespace: a.Namespace, Name: a.Name}
		a.RecordDigest = q.proofs[release]
		reported[release] = a.RecordDigest
	}
	q.proofs, q.memory.proofs.written = reported, reported
}

// setTerms brings changed terms into a record. A record that isn't proven gets the terms once it
// is.
func (q *clusterRun) setTerms(ctx context.Context, record deliver.Summary, terms deliver.Terms) error {
	if !q.isProven(record) || equality.Semantic.DeepEqual(record.Terms, terms) {
		return nil
	}
	proof, err := q.Deliverer.SetTerms(ctx, q.target(), record.Release, q.ca.UID, q.proofs[record.Release], terms)
	if err == nil {
		q.proofs[record.Release] = proof
	}
	return err
}
