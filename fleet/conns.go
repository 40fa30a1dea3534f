// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"net"
	"sync/atomic"

	"k8s.io/client-go/util/connrotation"
)

// watchedConn is a TCP connection whose end is noticed. HTTP closes it once the server, or the
// network, has ended it.
type watchedConn struct {
	net.Conn
	transport *transport
}

// Close implements io.Closer.
func (c *watchedConn) Close() error {
	if !c.transport.closed.Load() {
		c.transport.unanswered()
	}
	return c.Conn.Close()
}

// traced makes a dialer note in the context's trace how far it came.
func traced(dial connrotation.DialFunc) connrotation.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		trace, ok := ctx.Value(traceKey{}).(*trace)
		if err != nil || !ok {
			return conn, err
		}
		trace.dialled.Store(true)
		return &tracedConn{Conn: conn, trace: trace}, nil
	}
}

type traceKey struct{}

// trace is how far an attempt came before its deadline.
type trace struct{ dialled, answered, secured atomic.Bool }

// tracedConn notes the first byte that the server sends.
type tracedConn struct {
	net.Conn
	trace *trace
}

func (c *tracedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.trace.answered.Store(true)
	}
	return n, err
}
