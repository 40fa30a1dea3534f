// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"

	"github.com/cluster-chandler/chandler/internal/deliver"
)

// termsOf an add-on are those of its record, with the stack, the deletion policy and
// the dependencies as they are now: there they are read when the stack is gone.
//
// One that comes from another place now, and is the same, gets that place, too: so
// nobody has to ask there to see that nothing is to be done.
func termsOf(a *addon, record deliver.Summary, in *inputs, settled bool) deliver.Terms {
	terms := record.Terms()
	terms.Stack, terms.DeletionPolicy, terms.DependsOn = a.stack, a.deletionPolicy, a.DependsOn
	if settled && terms.ArtifactVersion != in.version && terms.Spec != specDigest(a) {
		terms.Spec, terms.ArtifactVersion = specDigest(a), in.version
	}
	return terms
}

// setTerms brings changed terms into the record.
func (q *request) setTerms(ctx context.Context, a *addon, record deliver.Summary, terms deliver.Terms) followUp {
	if !record.Complete || record.Terms().Equal(terms) {
		return followUp{}
	}
	if err := q.Deliverer.SetTerms(ctx, q.workload.target(), a.release(), terms); err != nil {
		return requestFailed(err, a.status()).followUp
	}
	return followUp{}
}
