// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/cluster-chandler/chandler/internal/source/failure"
	"github.com/cluster-chandler/chandler/internal/source/lru"
)

// flights are the requests to other hosts that are under way: one for all who want the
// same. A caller waits a moment for one that may be quick. After that it goes on without
// him, and he is woken when it has landed; see [WithWaker].
type flights struct {
	clock clock.Clock
	// failed says by name how the last ones ended that failed: while the next one is
	// under way, that is still what is known.
	failed *lru.Cache[string, failedFlight]

	mu    sync.Mutex
	aloft map[string]*flight              // by name
	to    map[string]map[*flight]struct{} // those aloft, by host
}

// route is what a flight is about. Who names the same flies with it.
type route struct {
	name string
	host string
	// credentials that are used: how a flight with others ended says nothing.
	credentials string
}

type flight struct {
	route
	begun   time.Time
	waiting map[Waiter]func() // who left before it landed, and how to wake them

	done  chan struct{}
	value any
	err   error
}

type failedFlight struct {
	err         *failure.Error
	credentials string
	// until is how long it is told while the next one is under way: long enough for those
	// who try again when it says so.
	until time.Time
	// untaken is set until this time if there were some to wake: they didn't hear of it.
	untaken time.Time
}

func newFlights(clock clock.Clock) *flights {
	return &flights{
		clock:  clock,
		failed: lru.New[string](remembered, lru.One[failedFlight]),
		aloft:  map[string]*flight{},
		to:     map[string]map[*flight]struct{}{},
	}
}

// board joins the flight of this name, or starts it, and waits for it as long as the
// caller may. If that wasn't enough, the error is how the last flight of this name
// failed, or else [failure.ArtifactPending].
func board[T any](ctx context.Context, f *flights, to route, do func(context.Context) (T, error)) (T, error) {
	var none T
	if failed, is := f.untaken(to); is {
		return none, failed
	}
	for {
		joined := f.join(ctx, to, func(ctx context.Context) (any, error) { return do(ctx) })
		landed, err := f.await(ctx, to, joined)
		if err != nil || !landed {
			return none, err
		}
		if joined.err != nil && joined.credentials != to.credentials {
			continue // it was under way with those that somebody has replaced
		}
		value, _ := joined.value.(T)
		return value, joined.err
	}
}

func (f *flights) join(ctx context.Context, to route, do func(context.Context) (any, error)) *flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.aloft[to.name]; known != nil {
		return known
	}
	started := &flight{route: to, begun: f.clock.Now(), waiting: map[Waiter]func(){}, done: make(chan struct{})}
	f.aloft[to.name] = started
	if f.to[to.host] == nil {
		f.to[to.host] = map[*flight]struct{}{}
	}
	f.to[to.host][started] = struct{}{}
	go func() {
		defer f.land(started)
		started.err = guarded(func() (err error) {
			started.value, err = do(onItsOwn(ctx))
			return err
		})
	}()
	return started
}

// land ends a flight, remembers how it failed, and wakes who waits.
func (f *flights) land(landed *flight) {
	f.mu.Lock()
	delete(f.aloft, landed.name)
	delete(f.to[landed.host], landed)
	if len(f.to[landed.host]) == 0 {
		delete(f.to, landed.host)
	}
	var failed *failure.Error
	switch {
	case landed.err == nil:
		f.failed.Remove(landed.name)
	case errors.As(landed.err, &failed) && failed.Reason != failure.ArtifactPending:
		now := f.clock.Now()
		last := failedFlight{err: failed, credentials: landed.credentials, until: now.Add(failed.RetryAfter + 2*maxRetry)}
		if len(landed.waiting) > 0 {
			last.untaken = now.Add(firstRetry)
		}
		f.failed.Put(landed.name, last)
	}
	close(landed.done)
	f.mu.Unlock()
	for _, wake := range landed.waiting {
		wake()
	}
}

// await waits for a flight on the caller's route. If it doesn't land in time, the caller
// is woken later.
func (f *flights) await(ctx context.Context, to route, joined *flight) (landed bool, err error) {
	begun := f.clock.Now()
	defer func() { spend(ctx, f.clock.Since(begun)) }()
	select {
	case <-joined.done:
		return true, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-f.clock.After(f.patience(ctx, to, joined)):
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-joined.done:
		return true, nil
	default:
	}
	if by := wakerOf(ctx); by != nil {
		joined.waiting[by.who] = by.wake
	}
	switch last, known := f.lastOf(to); {
	case err != nil:
		return false, err
	case known:
		again := *last.err
		again.Again, again.RetryAfter = true, comeBack(ctx)
		return false, &again
	}
	return false, pending(ctx)
}

// patience is how long this caller waits. A host that is slow now, for whatever it was
// asked, isn't waited for; nor is an answer in place of a failure that can be told.
func (f *flights) patience(ctx context.Context, to route, joined *flight) time.Duration {
	left := patient(ctx)
	if left > patience { // no reconcile is held up
		return left
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, failed := f.lastOf(to); failed || f.slow(joined.host) {
		return leastPatience
	}
	return max(leastPatience, min(left, patience-f.clock.Since(joined.begun)))
}

// slow says whether a host lets somebody wait already.
func (f *flights) slow(host string) bool {
	for other := range f.to[host] {
		if f.clock.Since(other.begun) >= patience {
			return true
		}
	}
	return false
}

// lastOf is how the last flight failed, if that wasn't long ago.
func (f *flights) lastOf(to route) (failedFlight, bool) {
	last, known := f.failed.Get(to.name)
	return last, known && last.credentials == to.credentials && f.clock.Now().Before(last.until)
}

// untaken is how the last flight failed, if that is new to those who were woken.
func (f *flights) untaken(to route) (*failure.Error, bool) {
	last, known := f.lastOf(to)
	return last.err, known && f.clock.Now().Before(last.untaken)
}

// route of a flight for the reference.
func (r *remote) route(ctx context.Context, name string, ref Reference) route {
	if ref.Bundle != nil {
		ref = BundleOf(ref.Namespace, ref.Bundle)
	}
	if !ref.remote() {
		return route{name: name}
	}
	return route{name: name, host: ref.base().Host, credentials: r.access.version(ctx, ref)}
}
