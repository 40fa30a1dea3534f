// SPDX-License-Identifier: Apache-2.0

package room

import (
	"context"
	"sync"
)

// Baggage is the room of what a flight got, until it is unpacked.
type Baggage struct {
	room *Room
	mu   sync.Mutex
	held int64
	over bool
}

type baggageKey struct{}

// Carry makes readings with the context leave their room to the flight.
func (r *Room) Carry(ctx context.Context) (context.Context, *Baggage) {
	carried := &Baggage{room: r}
	return context.WithValue(ctx, baggageKey{}, carried), carried
}

func (b *Baggage) add(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		b.room.Release(bytes)
		return
	}
	b.held += bytes
}

// Drop gives the room back: what was got is unpacked.
func (b *Baggage) Drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.room.Release(b.held)
	b.held, b.over = 0, true
}
