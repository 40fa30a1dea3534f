// SPDX-License-Identifier: Apache-2.0

package reviews

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
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
