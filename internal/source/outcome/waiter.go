// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"context"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
)

const (
	// Patience is how long one reconcile waits for sources, all together.
	Patience = time.Second
	// leastPatience is how long it waits for each further one, and at a host that is
	// silent: the answer may be at hand.
	leastPatience = 50 * time.Millisecond
	// comeBackAnyway is when an object comes back at the latest that is to be woken.
	comeBackAnyway = time.Minute
)

type waiterKey struct{}

// waiter is an object that can't wait long.
type waiter struct {
	name  string
	begun time.Time
	wake  func()
}

// WithWaiter returns a context for the calls of one reconcile of the object with that name.
// Together they wait a moment for sources; wake is called at the end of each request that
// wasn't waited for.
func WithWaiter(ctx context.Context, name string, now time.Time, wake func()) context.Context {
	return context.WithValue(ctx, waiterKey{}, &waiter{name, now, wake})
}

// waiterOf returns nil if nobody is to be woken.
func waiterOf(ctx context.Context) *waiter {
	w, _ := ctx.Value(waiterKey{}).(*waiter)
	return w
}

// withoutWaiter is for requests, which wait for what they need in turn.
func withoutWaiter(ctx context.Context) context.Context {
	return context.WithValue(ctx, waiterKey{}, (*waiter)(nil))
}

// await waits for the end of a request as long as the caller may.
func (m *Memory[T]) await(ctx context.Context, q Question, ended <-chan singleflight.Result, silent bool) (entry[T], error) {
	w := waiterOf(ctx)
	var over <-chan time.Time // never, for a caller that isn't woken
	if w != nil {
		left := max(Patience-m.clock.Since(w.begun), leastPatience)
		if silent {
			left = leastPatience
		}
		over = m.clock.After(left)
	}
	select {
	case result := <-ended:
		return result.Val.(entry[T]), nil
	case <-ctx.Done():
	case <-over:
	}
	if w != nil {
		go func() {
			<-ended
			w.wake()
		}()
	}
	if err := ctx.Err(); err != nil {
		return entry[T]{}, err
	}
	return entry[T]{}, m.pending(q.Key)
}

// pending is the error while a request goes on: why the last one failed, if it did.
func (m *Memory[T]) pending(key string) *failure.Error {
	if e := m.recall(key); e.failed != nil {
		again := repeated(e.failed, comeBackAnyway)
		again.Again = true
		return again
	}
	slow := failure.New(failure.ArtifactPending, "the source is slow; what it has is still being read")
	slow.Wait, slow.RetryAfter = true, comeBackAnyway
	return slow
}
