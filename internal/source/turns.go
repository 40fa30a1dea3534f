// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

const (
	// listsAtOnce is how many lists of versions are read at once, and listsOfHost those of
	// one host: each takes some memory, and a connection.
	listsAtOnce = 64
	listsOfHost = 16
)

// turns let those who want to read lists wait: as many as they are, and however slow the
// hosts. One host, which may be silent, leaves places to others.
type turns struct {
	places *semaphore.Weighted

	mu    sync.Mutex
	hosts map[string]*hostTurns
}

// hostTurns are those at one host.
type hostTurns struct {
	places *semaphore.Weighted
	users  int // that have a place, or wait
}

func newTurns() *turns {
	return &turns{places: semaphore.NewWeighted(listsAtOnce), hosts: map[string]*hostTurns{}}
}

// take waits for a turn at the host, for as long as that takes.
func (t *turns) take(host string) (leave func()) {
	at := t.enter(host)
	never := context.Background()
	_ = at.places.Acquire(never, 1) // its only error is that of the context
	_ = t.places.Acquire(never, 1)
	return func() {
		t.places.Release(1)
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
