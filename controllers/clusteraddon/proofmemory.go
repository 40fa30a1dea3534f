// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"k8s.io/apimachinery/pkg/types"

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

// restore takes the proofs from the status, but for those that this process knows better.
func (p *proofs) restore(stored *addonsv1.ClusterAddon, uid types.UID) {
	if p.of != uid {
		*p = proofs{of: uid, written: map[deliver.Release]string{}}
	}
	for release, proof := range proofsIn(stored, uid) {
		if _, newer := p.written[release]; !newer {
			p.written[release] = proof
		}
	}
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
