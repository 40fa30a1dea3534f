// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	orascontent "oras.land/oras-go/v2/content"

	"github.com/cluster-chandler/chandler/internal/source/artifact"
	"github.com/cluster-chandler/chandler/internal/source/failure"
)

const (
	// smallBody is what each answer may have without asking for room: most charts do.
	smallBody = 256 << 10 // bytes
	// leastPace is how fast an answer has to come that has room while others wait for it,
	// unless a slower one would come in time, too.
	leastPace = 128 << 10 // bytes a second
	// paceAfter is how long a pause may be, and how long it may take to get to that pace.
	paceAfter = 2 * time.Second
)

// room is the memory that all answers of other hosts share that are larger than
// smallBody: that of one chart, unpacked. Each takes what it needs at most, in one go,
// before it reads on; so nobody waits for more who has some, and all get on in turn.
// Those that have room and are slow lose it when others wait: their request is ended.
type room struct {
	*semaphore.Weighted
	size      int64
	waiting   atomic.Int64
	paceAfter time.Duration
}

func newRoom(limits artifact.Limits) *room {
	size := max(limits.TotalBytes, limits.ArchiveBytes)
	return &room{Weighted: semaphore.NewWeighted(size), size: size, paceAfter: paceAfter}
}

// reading is what one visit to a host reads.
type reading struct {
	room *room
	stop context.CancelCauseFunc
	came atomic.Int64 // bytes, since it has room
	held int64        // bytes of room
}

type readingKey struct{}

// enter begins to read with requests that have the context.
func (r *room) enter(ctx context.Context) (context.Context, *reading) {
	ctx, stop := context.WithCancelCause(ctx)
	entered := &reading{room: r, stop: stop}
	return context.WithValue(ctx, readingKey{}, entered), entered
}

// done ends that, and with it the need for room.
func (r *reading) done() {
	r.stop(nil)
	r.giveBack(r.held)
}

// leave ends it, too, but what was read keeps its room until the flight ends that it is for.
func (r *reading) leave(ctx context.Context) {
	flight, ok := ctx.Value(baggageKey{}).(*baggage)
	if ok {
		flight.add(r.held)
		r.held = 0
	}
	r.done()
}

// take makes sure that the reading has room, and returns how much that took.
func (r *reading) take(ctx context.Context, bytes int64) (taken int64, err error) {
	taken = min(bytes, r.room.size) - r.held
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
		go r.keepPace(ctx, min(leastPace, float64(taken)/fetchTimeout.Seconds()))
	}
	r.held += taken
	return taken, nil
}

// giveBack returns room that wasn't needed.
func (r *reading) giveBack(bytes int64) {
	r.held -= bytes
	r.room.Release(bytes)
}

// keepPace ends the requests if they bring fewer bytes a second while others wait. It
// looks at what has come lately: much may have come at once while this one waited.
func (r *reading) keepPace(ctx context.Context, least float64) {
	tick := time.NewTicker(r.room.paceAfter)
	defer tick.Stop()
	for came := r.came.Load(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		before := came
		came = r.came.Load()
		if r.room.waiting.Load() > 0 && float64(came-before) < least*r.room.paceAfter.Seconds() {
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

// read reads the body of an answer, but no more of it than is accepted. Its length is
// not positive if it isn't known.
func read(ctx context.Context, body io.Reader, length int64, what string, most int64) ([]byte, error) {
	data, err := readInRoom(ctx, body, length, what, most)
	var slow *failure.Error
	if err != nil && errors.As(context.Cause(ctx), &slow) {
		return nil, slow
	}
	return data, err
}

func readInRoom(ctx context.Context, body io.Reader, length int64, what string, most int64) ([]byte, error) {
	start, err := io.ReadAll(io.LimitReader(body, min(most, smallBody)+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(start)) > most:
		return nil, failure.TooLarge(what, most)
	case len(start) <= smallBody:
		return start, nil
	}
	entered, ok := ctx.Value(readingKey{}).(*reading)
	if !ok {
		return nil, errors.New("a large answer is read outside of a visit")
	}
	need := most
	if length > smallBody && length < most {
		need = length
	}
	taken, err := entered.take(ctx, need)
	if err != nil {
		return nil, err
	}
	data, err := fill(append(make([]byte, 0, need+1), start...), entered.count(body)) // one more, to tell the end from the limit
	switch {
	case err != nil:
		return nil, err
	case int64(len(data)) > most:
		return nil, failure.TooLarge(what, most)
	case int64(len(data)) > need:
		return nil, orascontent.ErrTrailingData
	}
	if unused := need - int64(len(data)); unused > smallBody && unused <= taken {
		data = slices.Clone(data)
		entered.giveBack(unused)
	}
	return data, nil
}

// fill appends what the body has, up to the capacity.
func fill(data []byte, body io.Reader) ([]byte, error) {
	for len(data) < cap(data) {
		n, err := body.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return data, nil
}

// count counts what is read of the body.
func (r *reading) count(body io.Reader) io.Reader { return io.TeeReader(body, (*counter)(r)) }

// measured is a body of the reading that the context is of.
func measured(ctx context.Context, body io.Reader) io.Reader {
	if entered, ok := ctx.Value(readingKey{}).(*reading); ok {
		return entered.count(body)
	}
	return body
}

type counter reading

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	c.came.Add(int64(len(p)))
	return len(p), nil
}

// reserve takes room for all that will be read with the context, if that is much.
func reserve(ctx context.Context, bytes int64) error {
	entered, ok := ctx.Value(readingKey{}).(*reading)
	if !ok || bytes <= smallBody {
		return nil
	}
	_, err := entered.take(ctx, bytes)
	return err
}

// baggage is the room of what a flight got, until it is unpacked.
type baggage struct {
	room *room
	mu   sync.Mutex
	held int64
	over bool
}

type baggageKey struct{}

// carry makes readings with the context leave their room to the flight.
func (r *room) carry(ctx context.Context) (context.Context, *baggage) {
	carried := &baggage{room: r}
	return context.WithValue(ctx, baggageKey{}, carried), carried
}

func (b *baggage) add(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		b.room.Release(bytes)
		return
	}
	b.held += bytes
}

func (b *baggage) drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.room.Release(b.held)
	b.held, b.over = 0, true
}
