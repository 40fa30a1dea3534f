// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/cluster-chandler/chandler/internal/deliver"
)

// proofs are those of the records that this process wrote last, by release. Each is in the status at the
// end of the reconcile that wrote the record, so losing them costs nothing. They are those of one ClusterAddon:
// another one of its name has run nothing yet.
type proofs struct {
	of      types.UID
	written map[deliver.Release]string
}

// restoreProofs takes the proofs from the status, but for those that this process knows better.
func (q *request) restoreProofs() {
	known := &q.memory.proofs
	if known.of != q.ca.UID {
		*known = proofs{of: q.ca.UID, written: map[deliver.Release]string{}}
	}
	q.proofs = known.written
	if q.stored.Status.ObservedUID != q.ca.UID {
		return // it came from a backup
	}
	for i := range q.stored.Status.Addons {
		a := &q.stored.Status.Addons[i]
		release := deliver.Release{Namespace: a.Namespace, Name: a.Name}
		if _, newer := known.written[release]; !newer && a.RecordDigest != "" {
			known.written[release] = a.RecordDigest
		}
	}
}

// proofOf returns the proof of the release's record, "" if this ClusterAddon has none.
func (q *request) proofOf(release deliver.Release) string { return q.proofs[release] }

// isProven reports whether a record is as it was written for this ClusterAddon.
func (q *request) isProven(record deliver.Summary) bool {
	return record.IsProvenBy(q.proofOf(record.Release))
}

// noteProof keeps the proof of a release's record. "" says that the record isn't as it was written.
func (q *request) noteProof(release deliver.Release, proof string) {
	q.proofs[release] = proof
}

// reportProofs writes the proofs into the statuses of the add-ons, and forgets all others.
func (q *request) reportProofs() {
	reported := map[deliver.Release]string{}
	for i := range q.ca.Status.Addons {
		a := &q.ca.Status.Addons[i]
		release := deliver.Release{Namespace: a.Namespace, Name: a.Name}
		a.RecordDigest = q.proofOf(release)
		reported[release] = a.RecordDigest
	}
	q.proofs, q.memory.proofs.written = reported, reported
}
