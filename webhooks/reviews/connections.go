// SPDX-License-Identifier: Apache-2.0

package reviews

import (
	"crypto/tls"
	"net"
	"net/http"
)

// limited accepts so many connections as there is room for. Where clients open more, what has been of no use for longest
// is closed, of the client that has most.
type limited struct {
	net.Listener
	room *room
}

// Accept returns the next connection that there is room for.
func (l *limited) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &connection{Conn: conn, share: l.room.enter(clientOf(conn.RemoteAddr().String()), func() { _ = conn.Close() })}
		if c.share.take(1) {
			return c, nil
		}
		_ = c.Close()
	}
}

type connection struct {
	net.Conn
	share *share
}

// Close closes the connection, and makes room for another one.
func (c *connection) Close() error {
	c.share.leave()
	return c.Conn.Close()
}

// renew has a connection that a request was answered on count as a new one.
func renew(conn net.Conn, state http.ConnState) {
	if secured, ok := conn.(*tls.Conn); ok && state == http.StateIdle {
		if c, ok := secured.NetConn().(*connection); ok {
			c.share.renew(func() { _ = c.Conn.Close() })
		}
	}
}
