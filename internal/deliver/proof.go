// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"errors"
	"slices"

	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// A record is a claim: whoever may write Secrets in its namespace can make or change one. So its proof is
// kept in the management cluster, and given to each call. Nothing is applied, run, repaired or removed by a
// record that isn't proven. The newest record of a wanted add-on may lack the proof for a good reason. Its
// writer crashed before the proof was kept, or the cluster came from another management cluster. Then the
// revision is made once more. If the record has just that, it is proven. Else it is left behind by the next
// revision, which takes over those objects alone that the API server shows to be the add-on's.

// ErrUnproven says that nothing was done, because the newest record of the release isn't proven.
var ErrUnproven = errors.New("its release record isn't as this instance wrote it")

// history is what a call knows of a release's records.
type history struct {
	records []Summary // the newest first
	parts   map[int][]string
	proof   string // of the record that was written last, "" for none
}

// isProven reports whether a record is the one that the proof is of, or one that was deployed before that: each record
// names the proof of the one before.
func (r *history) isProven(s Summary) bool {
	proof := r.proof
	for _, known := range r.records {
		if s.IsProvenBy(proof) {
			return true
		}
		if known.IsProvenBy(proof) {
			proof = known.Previous
		}
	}
	return s.IsProvenBy(proof)
}

// believes reports whether a record is proven with what it holds.
func (r *history) believes(rec *record.Record) bool { return r.isProven(rec.Summary) && rec.IsIntact() }

// previousProof returns the proof of the last revision that was deployed, "" if that isn't proven.
func (r *history) previousProof() string {
	i := slices.IndexFunc(r.records, func(s Summary) bool { return s.Status == StatusDeployed })
	if i < 0 || !r.isProven(r.records[i]) {
		return ""
	}
	return r.records[i].Proof()
}
