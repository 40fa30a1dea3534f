// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"

	"github.com/cluster-chandler/chandler/internal/source/failure"
)

const (
	// patience is how long a reconcile waits for another host. The request goes on
	// after that, for the next reconcile to find its result.
	patience = 5 * time.Second
	// leastPatience is how long it waits for each further one when it has waited that
	// long for others: enough for a host that isn't slow.
	leastPatience = 250 * time.Millisecond
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

// patient is how long the next call may wait.
func patient(ctx context.Context) time.Duration {
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

// onItsOwn is the context of a flight, which goes on for others when the caller that
// started it leaves. It has a patience of its own with what it waits for in turn, maybe
// with several at once.
func onItsOwn(ctx context.Context) context.Context {
	return context.WithValue(context.WithoutCancel(ctx), patienceKey{}, nil)
}

// landed is the result of a flight to another host, which may come later than a
// reconcile can wait.
func landed(ctx context.Context, clock clock.Clock, flight <-chan singleflight.Result) (singleflight.Result, error) {
	begun := clock.Now()
	defer func() { spend(ctx, clock.Since(begun)) }()
	select {
	case <-ctx.Done():
		return singleflight.Result{}, ctx.Err()
	case <-clock.After(patient(ctx)):
		return singleflight.Result{}, pending()
	case result := <-flight:
		return result, nil
	}
}

// pending is the error of a request that goes on.
func pending() *failure.Error {
	slow := failure.New(failure.ArtifactPending, "the source is slow; the chart is still being read")
	slow.Wait, slow.RetryAfter = true, time.Second
	return slow
}
