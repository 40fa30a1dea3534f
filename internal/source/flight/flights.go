// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
)

// Flights are the requests to other hosts that are under way: one for all who want the
// same. A caller waits a moment for one that may be quick. After that it goes on without
// him, and he is woken when it has landed; see [WithWaker].
type Flights struct {
	clock  clock.Clock
	failed *failures

	mu    sync.Mutex
	aloft map[string]*flight              // by name
	to    map[string]map[*flight]struct{} // those aloft, by host
}

// Route is what a flight is about. Who names the same flies with it.
type Route struct {
	Name string
	Host string
	// Credentials that are used: how a flight with others ended says nothing.
	Credentials string
}

type flight struct {
	Route
	begun   time.Time
	waiting Waiting // who left before it landed

	done  chan struct{}
	value any
	err   error
}

// New keeps times by the clock.
func New(clock clock.Clock) *Flights {
	return &Flights{
		clock:  clock,
		failed: newFailures(clock),
		aloft:  map[string]*flight{},
		to:     map[string]map[*flight]struct{}{},
	}
}

// Board joins the flight of this name, or starts it, and waits for it as long as the
// caller may. If that wasn't enough, the error is how the last flight of this name
// failed, or else [failure.ArtifactPending].
func Board[T any](ctx context.Context, f *Flights, to Route, do func(context.Context) (T, error)) (T, error) {
	var none T
	if failed, is := f.failed.untaken(to); is {
		return none, failed
	}
	for {
		joined := f.join(ctx, to, func(ctx context.Context) (any, error) { return do(ctx) })
		landed, err := f.await(ctx, to, joined)
		if err != nil || !landed {
			return none, err
		}
		if joined.err != nil && joined.Credentials != to.Credentials {
			continue // it was under way with those that somebody has replaced
		}
		value, _ := joined.value.(T)
		return value, joined.err
	}
}

func (f *Flights) join(ctx context.Context, to Route, do func(context.Context) (any, error)) *flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.aloft[to.Name]; known != nil {
		return known
	}
	started := &flight{Route: to, begun: f.clock.Now(), waiting: Waiting{}, done: make(chan struct{})}
	f.aloft[to.Name] = started
	if f.to[to.Host] == nil {
		f.to[to.Host] = map[*flight]struct{}{}
	}
	f.to[to.Host][started] = struct{}{}
	go func() {
		defer f.land(started)
		started.err = Guarded(func() (err error) {
			started.value, err = do(onItsOwn(ctx))
			return err
		})
	}()
	return started
}

// land ends a flight, remembers how it failed, and wakes who waits.
func (f *Flights) land(landed *flight) {
	f.mu.Lock()
	delete(f.aloft, landed.Name)
	delete(f.to[landed.Host], landed)
	if len(f.to[landed.Host]) == 0 {
		delete(f.to, landed.Host)
	}
	f.failed.note(landed)
	close(landed.done)
	f.mu.Unlock()
	landed.waiting.Wake()
}

// await waits for a flight on the caller's route. If it doesn't land in time, the caller
// is woken later.
func (f *Flights) await(ctx context.Context, to Route, joined *flight) (landed bool, err error) {
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
	joined.waiting.Add(ctx)
	if err != nil {
		return false, err
	}
	if last, known := f.failed.last(to); known {
		again := *last.err
		again.Again, again.RetryAfter = true, ComeBack(ctx)
		return false, &again
	}
	return false, pending(ctx)
}

// patience is how long this caller waits. A host that is slow now, for whatever it was
// asked, isn't waited for; nor is an answer in place of a failure that can be told.
func (f *Flights) patience(ctx context.Context, to Route, joined *flight) time.Duration {
	left := patient(ctx)
	if left > Patience { // no reconcile is held up
		return left
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, failed := f.failed.last(to); failed || f.slow(joined.Host) {
		return leastPatience
	}
	return max(leastPatience, min(left, Patience-f.clock.Since(joined.begun)))
}

// slow says whether a host lets somebody wait already.
func (f *Flights) slow(host string) bool {
	for other := range f.to[host] {
		if f.clock.Since(other.begun) >= Patience {
			return true
		}
	}
	return false
}

// Guarded makes an error of a panic: flights run where controller-runtime can't
// recover, and one chart that a parser fails on mustn't end the process for all others.
func Guarded(call func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = failure.New(failure.ArtifactInvalid, "it can't be read: a parser failed on it; make it anew")
		}
	}()
	return call()
}
