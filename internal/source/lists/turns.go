// SPDX-License-Identifier: Apache-2.0

package lists

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// listsOfHost is how many one host is asked for at once: each takes a connection.
const listsOfHost = 16

// turns let those who want to read lists wait: as many as they are, and however slow the
// hosts. Each host has places of its own, so one that is silent keeps none from others.
type turns struct {
	mu    sync.Mutex
	hosts map[string]*hostTurns
}

// hostTurns are those at one host.
type hostTurns struct {
	places *semaphore.Weighted
	users  int // that have a place, or wait
}

func newTurns() *turns {
	return &turns{hosts: map[string]*hostTurns{}}
}

// take waits for a turn at the host, for as long as that takes.
func (t *turns) take(host string) (leave func()) {
	at := t.enter(host)
	_ = at.places.Acquire(context.Background(), 1) // its only error is that of the context
	return func() {
		at.places.Release(1)
		t.mu.Lock()
		defer t.mu.Unlock()
		if at.users--; at.users == 0 {
			delete(t.hosts, host)
		}
	}
}

func (t *turns) enter(host string) *hostTurns {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.hosts[host]
	if at == nil {
		at = &hostTurns{places: semaphore.NewWeighted(listsOfHost)}
		t.hosts[host] = at
	}
	at.users++
	return at
}
