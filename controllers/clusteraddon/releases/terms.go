// SPDX-License-Identifier: Apache-2.0

package releases

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cluster-chandler/chandler/internal/deliver"
)

// Terms bring changed terms into the records of a cluster.
type Terms struct {
	Deliverer *deliver.Deliverer
	Target    deliver.Target
	// UID of the ClusterAddon.
	UID    types.UID
	Proofs *Proofs
}

// Write brings terms into a record. A record that isn't proven gets the terms once it is.
func (t Terms) Write(ctx context.Context, record deliver.Summary, terms deliver.Terms) error {
	if !t.Proofs.Prove(record) || equality.Semantic.DeepEqual(record.Terms, terms) {
		return nil
	}
	proof, err := t.Deliverer.SetTerms(ctx, t.Target, record.Release, t.UID, t.Proofs.Of(record.Release), terms)
	if err == nil {
		t.Proofs.Note(record.Release, proof)
	}
	return err
}
