// SPDX-License-Identifier: Apache-2.0

package fleet

import "context"

// slots bound the attempts that run at the same time. First attempts and
// retries have slots of their own, so that clusters which keep failing never
// stand before one that hasn't been tried.
type slots struct{ first, retries chan struct{} }

func newSlots(n int) slots {
	return slots{first: make(chan struct{}, n), retries: make(chan struct{}, n)}
}

// acquire waits for a slot and returns what gives it back, or the context's error.
func (s slots) acquire(ctx context.Context, retry bool) (release func(), err error) {
	slot := s.first
	if retry {
		slot = s.retries
	}
	select {
	case slot <- struct{}{}:
		return func() { <-slot }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
