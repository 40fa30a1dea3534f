// SPDX-License-Identifier: Apache-2.0

package deliver

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

// errNoMemory says that others had the memory that a call needs.
var errNoMemory = errors.New("others have it")

type waitedKey struct{}

// WithOneWait returns a context whose calls wait no more for memory once one of them has waited in vain, and whether one has.
func WithOneWait(ctx context.Context) (_ context.Context, waited func() bool) {
	inVain := &atomic.Bool{}
	return context.WithValue(ctx, waitedKey{}, inVain), inVain.Load
}

// memory is what a call takes of the budget, from its begin to its end.
type memory struct {
	claim *budget.Claim
	clock clock.WithDelayedExecution
	holds int64 // bytes
	spare int64 // of these, for what is parsed and dropped again
}

// newMemory returns the memory of a call for the context's tenant. It takes nothing yet.
func newMemory(ctx context.Context, of *budget.Budget, clock clock.WithDelayedExecution) *memory {
	return &memory{claim: of.Claim(budget.TenantOf(ctx), 0), clock: clock}
}

// hold takes so many bytes more, for which it waits a moment. With a negative number it gives bytes back.
func (m *memory) hold(ctx context.Context, more int64) error {
	if m.holds += more; more <= 0 {
		m.claim.Shrink(m.holds)
		return nil
	}
	inVain, known := ctx.Value(waitedKey{}).(*atomic.Bool)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if known && inVain.Load() {
		cancel(errNoMemory)
	}
	defer m.clock.AfterFunc(maxMemoryWait, func() { cancel(errNoMemory) }).Stop()
	err := m.claim.Grow(ctx, m.holds)
	switch {
	case errors.Is(err, budget.ErrTooLarge):
		err = &object.Failure{Kind: object.Rejected, Reason: ReasonAddonTooLarge, Message: fmt.Sprintf(
			"The add-on takes too much memory: %v. Split the chart, or raise --memory-per-cluster-mib of the manager", err)}
	case known && errors.Is(err, errNoMemory):
		inVain.Store(true)
	}
	return err
}

// spares takes what it needs to have so many bytes for a manifest that is parsed, until the call ends.
func (m *memory) spares(ctx context.Context, bytes int64) error {
	more := max(bytes-m.spare, 0)
	m.spare += more
	return m.hold(ctx, more)
}
