// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/fleet/limits"
)

// Window is how many bytes of an answer may have come before any is read. They count from the beginning of the request, as
// the transport keeps them.
const Window = 128 << 10

const (
	// step is by how much a claim grows at least.
	step = 64 << 10
	// idle is up to how many bytes between two events of a watch count as none.
	idle = 1 << 10
	// longestWatchWait is how long a watch waits for memory. It holds what has come meanwhile.
	longestWatchWait = 10 * time.Second
)

// Body is an answer that ends if it is larger than it may be, or finds no room.
type Body struct {
	io.ReadCloser
	request *http.Request
	asked   Asked
	limit   int64 // of this answer, or of each event of a watch; 0: none
	list    int64 // of a list with all of its pages; 0: none
	had     int64 // size of the pages before
	read    int64
	largest int64 // size of the largest object, event or list in it
	sizer   sizer
	rate    *rate.Limiter
	clock   clock.PassiveClock
	claim   *budget.Claim
	held    int64 // by the claim
	whole   bool  // it was read to its end
	ended   func(size int64)
	failed  error
}

// most returns how much the answer may come to hold; nothing is known of one without a limit.
func (b *Body) most() int64 {
	switch left := b.list - b.had; {
	case b.list == 0:
		return b.takes(b.limit)
	case b.limit == 0:
		return b.takes(left)
	default:
		return b.takes(min(b.limit, left))
	}
}

// takes returns how much memory counts for an answer, or the events of a watch under way, of which so many bytes were read.
func (b *Body) takes(size int64) int64 {
	switch {
	case b.asked != Watch:
		size += Window
	case size < idle:
		return 0
	}
	return roundUp(size)
}

func roundUp(size int64) int64 { return (size + step - 1) / step * step }

// Read implements io.Reader.
func (b *Body) Read(into []byte) (int, error) {
	if b.failed != nil {
		return 0, b.failed
	}
	if b.asked == Watch && b.claim != nil { // those who read have taken the events before
		b.shrink(b.takes(int64(b.sizer.pending())))
	}
	n, err := b.ReadCloser.Read(into)
	b.read += int64(n)
	if b.asked == Watch {
		b.largest = 0
	}
	if b.sizer != nil {
		b.largest = max(b.largest, int64(b.sizer.add(into[:n], err == io.EOF)))
	}
	if b.failed = b.exceeded(n); b.failed == nil {
		b.failed = b.hold(b.size())
	}
	switch {
	case b.failed != nil:
		return 0, b.failed
	case err == io.EOF:
		b.whole = true
		b.shrink(roundUp(b.size()))
	}
	return n, err
}

// size returns how much of the answer, or of the events that were read just now, is in memory.
func (b *Body) size() int64 {
	if b.asked == Watch {
		return b.largest
	}
	return max(b.read, b.largest)
}

// exceeded returns an error if the answer is larger than it may be, after n bytes more.
func (b *Body) exceeded(n int) error {
	switch {
	case b.asked == Watch && b.limit > 0 && b.largest > b.limit:
		return b.tooLarge("an event of more than %d KiB", b.limit)
	case b.asked == Watch:
		if b.rate != nil && !b.rate.AllowN(b.clock.Now(), n) {
			return b.tooLarge("events of more than %d KiB per second", int64(b.rate.Limit()))
		}
		return nil
	}
	for _, limit := range []struct{ had, most int64 }{{0, b.limit}, {b.had, b.list}} {
		switch {
		case limit.most > 0 && limit.had+b.read > limit.most:
			return b.tooLarge("more than %d KiB", limit.most)
		case limit.most > 0 && limit.had+b.largest > limit.most:
			return b.tooLarge("values that take more than %d KiB", limit.most)
		}
	}
	return nil
}

func (b *Body) tooLarge(format string, limit int64) error {
	return &limits.Error{
		Reason:    limits.ResponseTooLarge,
		Message:   fmt.Sprintf("%s %s was answered with "+format, b.request.Method, b.request.URL.Path, limit>>10),
		Discovery: b.asked == Document,
	}
}

// hold waits until there is room for what an answer takes of which so many bytes were read.
func (b *Body) hold(size int64) error {
	to := b.takes(size)
	if b.claim == nil || to <= b.held {
		return nil
	}
	ctx, patience := b.request.Context(), time.Duration(math.MaxInt64)
	if b.asked == Watch {
		patience = longestWatchWait
	}
	if deadline, limited := ctx.Deadline(); limited {
		patience = min(patience, time.Until(deadline)/5*4) // so that the client hears why it gets nothing
	}
	what := fmt.Sprintf("The answer to %s %s", b.request.Method, b.request.URL.Path)
	if err := Hold(ctx, b.claim, to, patience, what, b.asked == Document); err != nil {
		return err
	}
	b.held = to
	return nil
}

func (b *Body) shrink(to int64) {
	if to < b.held {
		b.claim.Shrink(to)
		b.held = to
	}
}

// End says that there is no answer.
func (b *Body) End() { b.claim.End() }

// Close implements io.Closer. A whole answer is held until nobody needs it any more.
func (b *Body) Close() error {
	if b.ended != nil {
		b.ended(max(b.read, b.largest))
		b.ended = nil
	}
	if b.whole {
		b.claim.Release(b.request.Context())
	} else {
		b.claim.End()
	}
	return b.ReadCloser.Close()
}
