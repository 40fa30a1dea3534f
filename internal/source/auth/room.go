// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"io"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/shares"
)

const (
	// beginning is how many bytes of an answer take room at once. The rest takes room once they are there.
	// A host that sends as slowly as is allowed never comes so far.
	beginning = 1 << 20
	// beginningsBytes and restsBytes are what all answers together may take that are being read.
	beginningsBytes = 32 << 20
	restsBytes      = 64 << 20
	// leastBytes have to come in each rateWindow: 10 KiB/s.
	leastBytes = 100 << 10
	rateWindow = 10 * time.Second
)

// room is the memory for answers. A namespace has at most half of it. A request that has room for
// the rest of an answer waits for no more, so that no request waits for ever.
type room struct {
	clock             clock.Clock
	beginnings, rests *shares.Shares
}

func newRoom(clock clock.Clock) *room {
	return &room{clock, shares.NewReserved(beginningsBytes), shares.NewReserved(restsBytes)}
}

// take returns the body of an answer of so many bytes at most, once there is room for its beginning.
// The room is given back when the body is closed.
func (c *Client) take(ctx context.Context, content io.ReadCloser, most int64) (*body, error) {
	of := shares.Tenant{Namespace: c.Ref.Namespace}
	b := &body{content: content, host: c.host, closed: make(chan struct{})}
	claim := func(from *shares.Shares, bytes int64) error {
		claim := from.Join(of, bytes)
		b.claims = append(b.claims, claim)
		select {
		case <-claim.Granted():
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if err := claim(c.answers.beginnings, min(most, beginning)); err != nil {
		_ = b.Close() // the reason is the context's
		return nil, err
	}
	if most > beginning {
		b.claimRest = func() error { return claim(c.answers.rests, most-beginning) }
	}
	go b.watch(c.answers.clock)
	return b, nil
}

// body is the body of an answer that takes room for its rest while it is read.
type body struct {
	content   io.ReadCloser
	host      string
	claims    []*shares.Share
	claimRest func() error // nil if there is none, or it has its room
	read      int64
	closeOnce sync.Once
	closed    chan struct{}

	mu      sync.Mutex
	reading bool  // from the host
	arrived int64 // bytes in this window
	waited  bool  // for room, in this window
	isSlow  bool
}

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	if b.claimRest != nil {
		if b.read >= beginning {
			if err := b.claimRest(); err != nil {
				return 0, err
			}
			b.claimRest = nil
			b.mu.Lock()
			b.waited = true
			b.mu.Unlock()
		} else {
			p = p[:min(int64(len(p)), beginning-b.read)]
		}
	}
	b.note(true, 0)
	n, err := b.content.Read(p)
	b.read += int64(n)
	if b.note(false, n) {
		err = failure.New(failure.SourceUnavailable, "%s sends less than %d KiB in %s; have it send faster", b.host, leastBytes>>10, rateWindow)
	}
	return n, err
}

// note tells the watch what the reader does and has got. It returns whether the host was too slow.
func (b *body) note(reading bool, bytes int) (isSlow bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reading, b.arrived = reading, b.arrived+int64(bytes)
	return b.isSlow
}

// watch ends the answer of a host that sends too slowly.
func (b *body) watch(clock clock.Clock) {
	window := clock.NewTimer(rateWindow)
	defer window.Stop()
	for {
		select {
		case <-b.closed:
			return
		case <-window.C():
		}
		b.mu.Lock()
		isSlow := b.reading && !b.waited && b.arrived < leastBytes
		b.isSlow, b.arrived, b.waited = isSlow, 0, false
		b.mu.Unlock()
		if isSlow {
			_ = b.content.Close() // ends the read
			return
		}
		window.Reset(rateWindow)
	}
}

// Close implements [io.Closer].
func (b *body) Close() error {
	var err error
	b.closeOnce.Do(func() {
		close(b.closed)
		err = b.content.Close()
		for _, claim := range b.claims {
			claim.Release()
		}
	})
	return err
}
