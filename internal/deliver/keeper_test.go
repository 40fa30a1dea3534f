// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"context"
	"errors"
	"sync"

	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/deliver/repair"
)

// keeper keeps the proofs of the records, as a controller does in a status: after each call, unless it crashed in it.
type keeper struct {
	*deliver.Deliverer
	proofs *proofs
}

type proofs struct {
	mu   sync.Mutex
	kept map[deliver.Release]string
	// outlives says that a cut connection ends no process: it keeps the proofs.
	outlives bool
}

func (p *proofs) of(r deliver.Release) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.kept[r]
}

func (p *proofs) keep(r deliver.Release, proof string, err error) {
	if errors.Is(err, errCut) && !p.outlives {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept[r] = proof
}

func (k *keeper) Ensure(ctx context.Context, t deliver.Target, want deliver.Desired) (deliver.Outcome, error) {
	want.Proof = k.proofs.of(want.Release)
	o, err := k.Deliverer.Ensure(ctx, t, want)
	k.proofs.keep(want.Release, o.Proof, err)
	return o, err
}

func (k *keeper) Remove(ctx context.Context, t deliver.Target, r deliver.Release, leaving ...deliver.Release) (deliver.Outcome, error) {
	return k.Deliverer.Remove(ctx, t, r, k.proofs.of(r), leaving...)
}

func (k *keeper) Repair(ctx context.Context, t deliver.Target, want deliver.Repair) (deliver.Outcome, []repair.Difference, error) {
	want.Proof = k.proofs.of(want.Release)
	return k.Deliverer.Repair(ctx, t, want)
}

func (k *keeper) SetTerms(ctx context.Context, t deliver.Target, r deliver.Release, terms deliver.Terms) error {
	proof, err := k.Deliverer.SetTerms(ctx, t, r, record.ProofOwner(k.proofs.of(r)), k.proofs.of(r), terms)
	k.proofs.keep(r, proof, err)
	return err
}
