// SPDX-License-Identifier: Apache-2.0

// Package room bounds the memory that answers of other hosts take together.
package room

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
)

const (
	// leastPace is how fast an answer has to come that has room while others wait for it,
	// unless a slower one would come in time, too.
	leastPace = 128 << 10 // bytes a second
	// paceAfter is how long a pause may be, and how long it may take to get to that pace.
	paceAfter = 2 * time.Second
)

// Room is the memory that all answers of other hosts share that are larger than
// smallBody: that of one chart, unpacked. Each takes what it needs at most, in one go,
// before it reads on; so nobody waits for more who has some, and all get on in turn.
// Those that have room and are slow lose it when others wait: their request is ended.
type Room struct {
	*semaphore.Weighted
	// Size in bytes.
	Size int64
	// PaceAfter is how long a pause may be while others wait.
	PaceAfter time.Duration
	// Pace is how many bytes a second have to come then.
	Pace float64
	// Each is what an answer takes that begins to come, in bytes; see [Begin].
	Each int64

	waiting  atomic.Int64
	deadline time.Duration // of an answer
}

// New makes room for so many bytes. Each answer has to come within the deadline.
func New(size int64, deadline time.Duration) *Room {
	return &Room{Weighted: semaphore.NewWeighted(size), Size: size, PaceAfter: paceAfter, Pace: leastPace, deadline: deadline}
}

// Reading is what one visit to a host reads.
type Reading struct {
	room  *Room
	outer *Reading // that it is a part of
	stop  context.CancelCauseFunc
	ended <-chan struct{}
	came  atomic.Int64 // bytes
	held  int64        // bytes of room
}

type readingKey struct{}

// Enter begins to read with requests that have the context.
func (r *Room) Enter(ctx context.Context) (context.Context, *Reading) {
	ctx, stop := context.WithCancelCause(ctx)
	outer, _ := ctx.Value(readingKey{}).(*Reading)
	entered := &Reading{room: r, outer: outer, stop: stop, ended: ctx.Done()}
	return context.WithValue(ctx, readingKey{}, entered), entered
}

// Done ends that, and with it the need for room.
func (r *Reading) Done() {
	r.stop(nil)
	r.giveBack(r.held)
}

// Leave ends it, too, but what was read keeps its room until the flight ends that it is for.
func (r *Reading) Leave(ctx context.Context) {
	flight, ok := ctx.Value(baggageKey{}).(*Baggage)
	if ok {
		flight.add(r.held)
		r.held = 0
	}
	r.Done()
}

// take makes sure that the reading has room, and returns how much that took.
func (r *Reading) take(ctx context.Context, bytes int64) (taken int64, err error) {
	taken = min(bytes, r.room.Size) - r.held
	if taken <= 0 {
		return 0, nil
	}
	if !r.room.TryAcquire(taken) {
		if r.held > 0 { // who has room must not wait for more
			return 0, noRoom()
		}
		r.room.waiting.Add(1)
		err := r.room.Acquire(ctx, taken)
		r.room.waiting.Add(-1)
		if err != nil {
			return 0, noRoom()
		}
	}
	if r.held == 0 {
		go r.keepPace(min(r.room.Pace, float64(taken)/r.room.deadline.Seconds()))
	}
	r.held += taken
	return taken, nil
}

// giveBack returns room that wasn't needed.
func (r *Reading) giveBack(bytes int64) {
	r.held -= bytes
	r.room.Release(bytes)
}

// keepPace ends the requests if they bring fewer bytes a second while others wait. It
// looks at what has come lately: much may have come at once while this one waited.
func (r *Reading) keepPace(least float64) {
	tick := time.NewTicker(r.room.PaceAfter)
	defer tick.Stop()
	for came := r.came.Load(); ; {
		select {
		case <-r.ended:
			return
		case <-tick.C:
		}
		before := came
		came = r.came.Load()
		if r.room.waiting.Load() > 0 && float64(came-before) < least*r.room.PaceAfter.Seconds() {
			r.stop(tooSlow())
			return
		}
	}
}

func tooSlow() *failure.Error {
	return failure.New(failure.SourceUnavailable, "the source is slow, and others wait for the memory that its answer takes; it is asked again")
}

func noRoom() *failure.Error {
	return failure.New(failure.SourceUnavailable, "answers of other sources take all of the memory that there is for them; it is asked again")
}
