// SPDX-License-Identifier: Apache-2.0

package virtualcluster

import (
	"bytes"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/must"
)

// Address leads to an API server.
type Address struct {
	// Kubeconfig leads to the address.
	Kubeconfig []byte
	// Prefix is that of namespaces and cluster-scoped objects on the server. Empty if the server isn't shared.
	Prefix string

	listener net.Listener
	bytes    atomic.Int64
}

// Bytes returns how many bytes went both ways so far, with those of TLS.
func (a *Address) Bytes() int64 { return a.bytes.Load() }

func listen(t testing.TB) *Address {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	return &Address{listener: l}
}

// Direct returns an address that passes on all there is, as it is, each way after a delay. It ends with the test.
func Direct(t testing.TB, user *controlplane.User, delay time.Duration) *Address {
	t.Helper()
	a := listen(t)
	config, err := clientcmd.Load(user.Kubeconfig)
	must.Succeed(t, err)
	target := user.Config.Host[len("https://"):]
	for _, c := range config.Clusters {
		c.Server = "https://" + a.listener.Addr().String()
	}
	if a.Kubeconfig, err = clientcmd.Write(*config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.listener.Close() })
	go func() {
		for {
			from, err := a.listener.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", target)
			if err != nil {
				_ = from.Close()
				continue
			}
			go pass(to, counted{from, &a.bytes}, delay)
			go pass(counted{from, &a.bytes}, to, delay)
		}
	}()
	return a
}

// pass copies after a delay until one of both is closed, and closes both.
func pass(to, from net.Conn, delay time.Duration) {
	type piece struct {
		due   time.Time
		bytes []byte
	}
	pieces := make(chan piece, 1024)
	go func() {
		for p := range pieces {
			time.Sleep(time.Until(p.due))
			_, _ = to.Write(p.bytes) // the next read tells that it is closed
		}
		_ = to.Close()
		_ = from.Close()
	}()
	defer close(pieces)
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		pieces <- piece{time.Now().Add(delay), bytes.Clone(buffer[:n])}
		if err != nil {
			return
		}
	}
}

// counted is a connection whose bytes are counted.
type counted struct {
	net.Conn
	bytes *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

func (c counted) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.bytes.Add(int64(n))
	return n, err
}

// countedListener counts the bytes of all connections.
type countedListener struct {
	net.Listener
	bytes *atomic.Int64
}

func (l countedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return counted{c, l.bytes}, nil
}
