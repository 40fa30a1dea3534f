// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"net"
	"sync/atomic"
)

// trace is how far an attempt came before its deadline.
type trace struct{ dialled, answered, secured atomic.Bool }

type traceKey struct{}

// watchedConn is a TCP connection whose end is noticed. HTTP closes it once the server, or the
// network, has ended it.
type watchedConn struct {
	net.Conn
	transport *Transport
	trace     *trace // of the probe that it was made for; nil for any other request
}

// Read implements io.Reader. It notes the first byte that the server sends.
func (c *watchedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.trace != nil {
		c.trace.answered.Store(true)
	}
	return n, err
}

// Close implements io.Closer.
func (c *watchedConn) Close() error {
	if !c.transport.closed.Load() {
		c.transport.Unanswered()
	}
	return c.Conn.Close()
}
