// SPDX-License-Identifier: Apache-2.0

package releases

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
)

// Proofs of the release records that this ClusterAddon wrote. Another ClusterAddon of its name has run nothing yet.
//
// Key: the ClusterAddon's UID, and the release.
// Bound: the add-ons in the status.
// Lost with it: nothing. Each proof is in the status at the end of the reconcile that wrote the record.
type Proofs struct {
	of types.UID

	mu      sync.Mutex // add-ons are delivered beside each other
	written map[deliver.Release]string
}

// Restore takes the proofs from a status, but for those that this process knows better.
func (p *Proofs) Restore(stored *addonsv1.ClusterAddon, uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of != uid || p.written == nil {
		p.of, p.written = uid, map[deliver.Release]string{}
	}
	for release, proof := range ProofsIn(stored, uid) {
		if _, newer := p.written[release]; !newer {
			p.written[release] = proof
		}
	}
}

// Note keeps the proof of the record that was just written; "" says that the record isn't as it was written.
func (p *Proofs) Note(release deliver.Release, proof string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.written == nil {
		p.written = map[deliver.Release]string{}
	}
	p.written[release] = proof
}

// Of returns the proof of a release's record, "" if there is none.
func (p *Proofs) Of(release deliver.Release) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.written[release]
}

// Prove reports whether a record is as it was written for this ClusterAddon.
func (p *Proofs) Prove(record deliver.Summary) bool {
	return record.IsProvenBy(p.Of(record.Release))
}

// Report writes the proofs into the statuses of the add-ons, and forgets all others.
func (p *Proofs) Report(statuses []addonsv1.AddonStatus) {
	p.mu.Lock()
	defer p.mu.Unlock()
	reported := map[deliver.Release]string{}
	for i := range statuses {
		a := &statuses[i]
		release := deliver.Release{Namespace: a.Namespace, Name: a.Name}
		a.RecordDigest = p.written[release]
		reported[release] = a.RecordDigest
	}
	p.written = reported
}

// ProofsIn returns the proofs in a ClusterAddon's status, none if that came from a backup.
func ProofsIn(stored *addonsv1.ClusterAddon, uid types.UID) map[deliver.Release]string {
	all := map[deliver.Release]string{}
	for i := range stored.Status.Addons {
		if a := &stored.Status.Addons[i]; a.RecordDigest != "" && stored.Status.ObservedUID == uid {
			all[deliver.Release{Namespace: a.Namespace, Name: a.Name}] = a.RecordDigest
		}
	}
	return all
}
