// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"context"
	"sync"
	"time"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
)

const (
	// Patience is how long a reconcile waits for other hosts, in all: long enough for one
	// that isn't slow. A request goes on after that, and wakes who waits for it.
	Patience = time.Second
	// leastPatience is how long it waits for one that is known to be slow, and for each
	// further one when it has waited that long for others: it may be at hand.
	leastPatience = 20 * time.Millisecond
	// endless is the patience of flights that need others: their own contexts end before.
	endless = time.Hour
)

// WithSharedPatience makes all calls with the context wait for slow sources no longer
// than one of them would: a reconcile that needs many isn't held up by each in turn.
// The calls come one after the other.
func WithSharedPatience(ctx context.Context) context.Context {
	return WithPatience(ctx, Patience)
}

// WithPatience makes all calls with the context wait no longer than that, in all.
func WithPatience(ctx context.Context, left time.Duration) context.Context {
	return context.WithValue(ctx, patienceKey{}, &budget{left: left})
}

type patienceKey struct{}

// budget is what is left of the patience of calls that share it.
type budget struct {
	mu   sync.Mutex
	left time.Duration
}

// alone is in place of a budget where nobody is held up.
type alone struct{}

// patient is how long the next call may wait.
func patient(ctx context.Context) time.Duration {
	if _, flies := ctx.Value(patienceKey{}).(alone); flies {
		return endless
	}
	shared, ok := ctx.Value(patienceKey{}).(*budget)
	if !ok {
		return Patience
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	return max(shared.left, leastPatience)
}

// spend notes how long a call has waited.
func spend(ctx context.Context, waited time.Duration) {
	if shared, ok := ctx.Value(patienceKey{}).(*budget); ok {
		shared.mu.Lock()
		defer shared.mu.Unlock()
		shared.left -= waited
	}
}

// onItsOwn is the context of a flight, which goes on for others when the caller that
// started it leaves. It holds up nobody: for what it needs in turn, maybe several at
// once, it waits until that has landed.
func onItsOwn(ctx context.Context) context.Context {
	ctx = context.WithValue(context.WithoutCancel(ctx), wakerKey{}, nil)
	return context.WithValue(ctx, patienceKey{}, alone{})
}

// pending is the error of a request that goes on.
func pending(ctx context.Context) *failure.Error {
	slow := failure.New(failure.ArtifactPending, "the source is slow; what it has is still being read")
	slow.Wait, slow.RetryAfter = true, ComeBack(ctx)
	return slow
}
