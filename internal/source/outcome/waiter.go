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
	// leastPatience is how long it waits for each further one, and for one that others
	// waited for already: the answer may be at hand.
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

// withoutWaiter is for requests, which wait for what they need in turn.
func withoutWaiter(ctx context.Context) context.Context {
	return context.WithValue(ctx, waiterKey{}, (*waiter)(nil))
}

// OnWake returns what to call when something changes for the object that waits, under its
// name; nil if nobody is to be woken.
func OnWake(ctx context.Context) (name string, wake func()) {
	if w, _ := ctx.Value(waiterKey{}).(*waiter); w != nil {
		return w.name, w.wake
	}
	return "", nil
}

// await waits for the end of a request as long as the caller may.
func (m *Memory[T]) await(ctx context.Context, key string, ended <-chan singleflight.Result) (entry[T], error) {
	w, _ := ctx.Value(waiterKey{}).(*waiter)
	var over <-chan time.Time // never, for a caller that isn't woken
	if w != nil {
		left := Patience - m.clock.Since(w.begun)
		if begun := m.recall(key).begun; !begun.IsZero() && m.clock.Since(begun) >= Patience {
			left = leastPatience // others waited already
		}
		over = m.clock.After(max(left, leastPatience))
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
	return entry[T]{}, m.pending(key)
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
