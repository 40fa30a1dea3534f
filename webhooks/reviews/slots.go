// SPDX-License-Identifier: Apache-2.0

package reviews

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Slots that are held at the same time, by each client and by all together.
const (
	maxConnections, connectionsOfClient = 64, 16 // of a server
	maxRequests, requestsOfClient       = 16, 4  // of a kind
)

// connections are those of a server that are open, each with its client.
type connections struct {
	mu   sync.Mutex
	open map[net.Conn]string
}

// limit closes a new connection that is one too many.
func (c *connections) limit(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		client, others := clientOf(conn.RemoteAddr().String()), 0
		for _, other := range c.open {
			if other == client {
				others++
			}
		}
		if len(c.open) >= maxConnections || others >= connectionsOfClient {
			_ = conn.Close()
			return
		}
		c.open[conn] = client
	case http.StateClosed:
		delete(c.open, conn)
	}
}

// slots are held by the requests of one kind.
type slots struct {
	all *semaphore.Weighted

	mu       sync.Mutex
	byClient map[string]*clientSlots
}

// clientSlots are those of one client, for as long as a request uses them.
type clientSlots struct {
	*semaphore.Weighted
	requests int // that hold a slot, or wait for one
}

func newSlots() *slots {
	return &slots{all: semaphore.NewWeighted(maxRequests), byClient: map[string]*clientSlots{}}
}

// enter waits for a slot, first among the client's own requests. The function that it returns leaves the slot.
func (s *slots) enter(ctx context.Context, client string) (leave func(), err error) {
	s.mu.Lock()
	own := s.byClient[client]
	if own == nil {
		own = &clientSlots{Weighted: semaphore.NewWeighted(requestsOfClient)}
		s.byClient[client] = own
	}
	own.requests++
	s.mu.Unlock()
	forget := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if own.requests--; own.requests == 0 {
			delete(s.byClient, client)
		}
	}
	if err := own.Acquire(ctx, 1); err != nil {
		forget()
		return nil, err
	}
	if err := s.all.Acquire(ctx, 1); err != nil {
		own.Release(1)
		forget()
		return nil, err
	}
	return func() { s.all.Release(1); own.Release(1); forget() }, nil
}

// clientOf returns whom an address counts as. A host may have all addresses of an IPv6 network of 64 bits.
func clientOf(address string) string {
	parsed, err := netip.ParseAddrPort(address)
	if err != nil {
		return address
	}
	ip := parsed.Addr().Unmap().WithZone("")
	if ip.Is6() {
		return netip.PrefixFrom(ip, 64).Masked().String()
	}
	return ip.String()
}
