// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/cluster-chandler/chandler/test/must"
)

// services is the way from an API server to the pods behind Services, as kube-proxy
// is on a node. The API server is told to reach the cluster's network through it
// (--egress-selector-config-file), so that webhook configurations, which name
// Services, are used as they were built. All Services here lead to the webhooks.
type services struct {
	listener net.Listener
	config   string // file for the API server

	mu       sync.Mutex
	backends map[string]string // address by pod
	next     int
}

const egressConfig = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport: {uds: {udsName: %s}}
`

func startServices(t *testing.T) *services {
	t.Helper()
	dir, err := os.MkdirTemp("", "services-") // the path of a socket has to be short
	must.Succeed(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &services{config: filepath.Join(dir, "egress.yaml"), backends: map[string]string{}}
	socket := filepath.Join(dir, "socket")
	must.Succeed(t, os.WriteFile(s.config, fmt.Appendf(nil, egressConfig, socket), 0o600))
	if s.listener, err = (&net.ListenConfig{}).Listen(t.Context(), "unix", socket); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.listener.Close() })
	go s.serve()
	return s
}

func (s *services) serve() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		go s.tunnel(conn)
	}
}

// tunnel connects an API server with a pod.
func (s *services) tunnel(conn net.Conn) {
	defer conn.Close()
	if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil { // CONNECT, and nothing after it yet
		return
	}
	backend := s.dial()
	if backend == nil {
		_, _ = io.WriteString(conn, "HTTP/1.1 503 No endpoints\r\n\r\n")
		return
	}
	defer backend.Close()
	if _, err := io.WriteString(conn, "HTTP/1.1 200 Connected\r\n\r\n"); err != nil {
		return
	}
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{conn, backend}, {backend, conn}} {
		go func() { _, _ = io.Copy(way[0], way[1]); done <- struct{}{} }()
	}
	<-done // either side has ended
}

// dial takes the pods in turn, and the next one if one doesn't answer.
func (s *services) dial() net.Conn {
	s.mu.Lock()
	var addresses []string
	for _, name := range slices.Sorted(maps.Keys(s.backends)) {
		addresses = append(addresses, s.backends[name])
	}
	s.next++
	first := s.next
	s.mu.Unlock()
	for i := range addresses {
		if conn, err := net.Dial("tcp", addresses[(first+i)%len(addresses)]); err == nil {
			return conn
		}
	}
	return nil
}

// add makes a pod an endpoint.
func (s *services) add(pod, address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backends[pod] = address
}

// remove takes a pod out. Connections to it go on, as they do in a cluster.
func (s *services) remove(pod string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.backends, pod)
}
