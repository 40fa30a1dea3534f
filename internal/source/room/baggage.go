// SPDX-License-Identifier: Apache-2.0

package room

import (
	"context"
	"sync"
)

// baggage is the room of what a flight got, until it is unpacked.
type baggage struct {
	room *Room
	mu   sync.Mutex
	held int64
	over bool
}

type baggageKey struct{}

// Carry makes readings with the context leave their room to the flight.
func (r *Room) Carry(ctx context.Context) (context.Context, *baggage) {
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

func (b *baggage) Drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.room.Release(b.held)
	b.held, b.over = 0, true
}
