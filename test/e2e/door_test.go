// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io"
	"net"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/cluster-chandler/chandler/test/must"
)

// door is a listener that can refuse connections, or take them and be silent,
// and then be itself again at the same address.
type door struct {
	address string
	conns   chan net.Conn
	closed  chan struct{}
	once    sync.Once

	mu     sync.Mutex
	inner  net.Listener // nil while it refuses
	silent bool
	taken  map[net.Conn]struct{}
}

// openDoor listens at a free address on loopback.
func openDoor(t *testing.T) *door {
	t.Helper()
	d := &door{address: "127.0.0.1:0", conns: make(chan net.Conn), closed: make(chan struct{}), taken: map[net.Conn]struct{}{}}
	d.listen(t, false)
	d.address = d.inner.Addr().String()
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// refuse makes the system refuse connections, as to a server that doesn't run.
func (d *door) refuse() { d.shut() }

// swallow makes the door accept connections and never answer, as behind a
// broken network.
func (d *door) swallow(t *testing.T) {
	t.Helper()
	d.shut()
	d.listen(t, true)
}

// open makes the door let everything through again.
func (d *door) open(t *testing.T) {
	t.Helper()
	d.shut()
	d.listen(t, false)
}

func (d *door) listen(t *testing.T, silent bool) {
	t.Helper()
	inner, err := net.Listen("tcp", d.address)
	must.Succeed(t, err)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inner, d.silent = inner, silent
	go d.take(inner, silent)
}

func (d *door) take(inner net.Listener, silent bool) {
	for {
		conn, err := inner.Accept()
		if err != nil {
			return
		}
		d.mu.Lock()
		d.taken[conn] = struct{}{}
		d.mu.Unlock()
		if silent {
			go d.hold(conn)
			continue
		}
		select {
		case d.conns <- &passing{Conn: conn, door: d}:
		case <-d.closed:
			_ = conn.Close()
			return
		}
	}
}

// hold reads from a connection that gets no answer, until the client gives up.
func (d *door) hold(conn net.Conn) {
	_, _ = io.Copy(io.Discard, conn)
	d.mu.Lock()
	delete(d.taken, conn)
	d.mu.Unlock()
	_ = conn.Close()
}

// shut stops listening, and breaks all connections.
func (d *door) shut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.inner != nil {
		_ = d.inner.Close()
		d.inner = nil
	}
	for conn := range d.taken {
		_ = conn.Close()
	}
	clear(d.taken)
}

// hanging are the connections whose clients wait for an answer.
func (d *door) hanging() sets.Set[net.Conn] {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.silent {
		return nil
	}
	return sets.KeySet(d.taken)
}

// Accept implements net.Listener.
func (d *door) Accept() (net.Conn, error) {
	select {
	case conn := <-d.conns:
		return conn, nil
	case <-d.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (d *door) Close() error {
	d.once.Do(func() { close(d.closed) })
	d.shut()
	return nil
}

// Addr implements net.Listener.
func (d *door) Addr() net.Addr { return &net.TCPAddr{} }

// passing is a connection that the door forgets when it is closed.
type passing struct {
	net.Conn
	door *door
}

func (p *passing) Close() error {
	p.door.mu.Lock()
	delete(p.door.taken, p.Conn)
	p.door.mu.Unlock()
	return p.Conn.Close()
}
