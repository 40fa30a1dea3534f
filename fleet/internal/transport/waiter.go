// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"

	"k8s.io/client-go/util/flowcontrol"
)

// Waiter is a rate limiter for which nobody waits any more once a context has ended.
type Waiter struct {
	flowcontrol.RateLimiter
	Under context.Context //nolint:containedctx // callers have none to give, or one that ends later
}

// Wait implements flowcontrol.RateLimiter.
func (w Waiter) Wait(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(w.Under, func() { cancel(context.Cause(w.Under)) })()
	return w.RateLimiter.Wait(ctx)
}
