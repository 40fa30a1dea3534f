// SPDX-License-Identifier: Apache-2.0

// Package memory has what calls for add-ons take of the manager's memory.
package memory

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
)

// maxMemoryWait is how long a call waits for memory, as it holds a worker meanwhile.
const maxMemoryWait = time.Second

// ReasonTooLarge: the add-on takes more memory than one cluster may have.
const ReasonTooLarge = "AddonTooLarge"

// ErrTaken says that others had the memory that a call needs.
var ErrTaken = errors.New("others have it")

type waitedKey struct{}

// WithOneWait returns a context whose calls wait no more for memory once one of them has waited in vain, and whether one has.
func WithOneWait(ctx context.Context) (_ context.Context, waited func() bool) {
	inVain := &atomic.Bool{}
	return context.WithValue(ctx, waitedKey{}, inVain), inVain.Load
}

// Claim is what a call takes of the budget, from its begin to its end.
type Claim struct {
	claim *budget.Claim
	clock clock.WithDelayedExecution
	holds int64 // bytes
	spare int64 // of these, for what is parsed and dropped again
}

// New returns the claim of a call for the context's tenant. It takes nothing yet.
func New(ctx context.Context, of *budget.Budget, clock clock.WithDelayedExecution) *Claim {
	return &Claim{claim: of.Claim(budget.TenantOf(ctx), 0), clock: clock}
}

// Hold takes so many bytes more, for which it waits a moment. With a negative number it gives bytes back.
func (m *Claim) Hold(ctx context.Context, more int64) error {
	if m.holds += more; more <= 0 {
		m.claim.Shrink(m.holds)
		return nil
	}
	inVain, known := ctx.Value(waitedKey{}).(*atomic.Bool)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if known && inVain.Load() {
		cancel(ErrTaken)
	}
	defer m.clock.AfterFunc(maxMemoryWait, func() { cancel(ErrTaken) }).Stop()
	err := m.claim.Grow(ctx, m.holds)
	switch {
	case errors.Is(err, budget.ErrTooLarge):
		err = &object.Failure{Kind: object.Rejected, Reason: ReasonTooLarge, Message: fmt.Sprintf(
			"The add-on takes too much memory: %v. Split the chart, or raise --memory-per-cluster-mib of the manager", err)}
	case known && errors.Is(err, ErrTaken):
		inVain.Store(true)
	}
	return err
}

// Spare takes what it needs to have so many bytes for a manifest that is parsed, until the call ends.
func (m *Claim) Spare(ctx context.Context, bytes int64) error {
	more := max(bytes-m.spare, 0)
	m.spare += more
	return m.Hold(ctx, more)
}

// End gives all back.
func (m *Claim) End() { m.claim.End() }
