// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/cluster-chandler/chandler/internal/source/failure"
)

const (
	// patience is how long a reconcile waits for other hosts, in all: long enough for one
	// that isn't slow. A request goes on after that, and wakes who waits for it.
	patience = time.Second
	// leastPatience is how long it waits for one that is known to be slow, and for each
	// further one when it has waited that long for others: it may be at hand.
	leastPatience = 20 * time.Millisecond
	// comeBackAnyway is when who is to be woken comes back at the latest.
	comeBackAnyway = time.Minute
)

// WithSharedPatience makes all calls with the context wait for slow sources no longer
// than one of them would: a reconcile that needs many isn't held up by each in turn.
// The calls come one after the other.
func WithSharedPatience(ctx context.Context) context.Context {
	return context.WithValue(ctx, patienceKey{}, &budget{left: patience})
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
		return flightTimeout
	}
	shared, ok := ctx.Value(patienceKey{}).(*budget)
	if !ok {
		return patience
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

// Waiter is an object that waits for sources. Those of other kinds may have its name.
type Waiter struct {
	Kind string
	Key  types.NamespacedName
}

// WithWaker has wake called when something has come that a call with the context waited
// for in vain, or when it is known that it doesn't. Of equal waiters, one is woken.
func WithWaker(ctx context.Context, who Waiter, wake func()) context.Context {
	return context.WithValue(ctx, wakerKey{}, &waker{who, wake})
}

type wakerKey struct{}

type waker struct {
	who  Waiter
	wake func()
}

// wakerOf is nil if nobody is to be woken.
func wakerOf(ctx context.Context) *waker {
	by, _ := ctx.Value(wakerKey{}).(*waker)
	return by
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
	slow.Wait, slow.RetryAfter = true, comeBack(ctx)
	return slow
}

// comeBack is when to ask again for what is under way.
func comeBack(ctx context.Context) time.Duration {
	if wakerOf(ctx) != nil {
		return comeBackAnyway
	}
	return time.Second
}
