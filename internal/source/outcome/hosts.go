// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// perHost is how many requests to one host are under way at once.
const perHost = 8

// Hosts bounds the requests to each host, so that one which never answers takes no more of
// the process than a few connections.
type Hosts struct {
	clock clock.PassiveClock

	mu sync.Mutex
	of map[string]*host
}

type host struct {
	places chan struct{}
	users  int       // requests under way, and those that wait for a place
	since  time.Time // the last of them ended, or the first began
}

// NewHosts returns the bounds of no host yet.
func NewHosts(clock clock.PassiveClock) *Hosts { return &Hosts{clock: clock, of: map[string]*host{}} }

// silent reports whether the host lets others wait already.
func (h *Hosts) silent(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := h.of[name]
	return at != nil && h.clock.Since(at.since) >= Patience
}

// enter waits until a request to the host may begin. The caller calls leave in any case.
func (h *Hosts) enter(ctx context.Context, name string) (leave func(), err error) {
	if name == "" {
		return func() {}, nil
	}
	h.mu.Lock()
	at := h.of[name]
	if at == nil {
		at = &host{places: make(chan struct{}, perHost), since: h.clock.Now()}
		h.of[name] = at
	}
	at.users++
	h.mu.Unlock()
	entered := false
	select {
	case at.places <- struct{}{}:
		entered = true
	case <-ctx.Done():
		err = ctx.Err()
	}
	return func() {
		if entered {
			<-at.places
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		at.since = h.clock.Now()
		if at.users--; at.users == 0 {
			delete(h.of, name)
		}
	}, err
}
