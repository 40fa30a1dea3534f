// SPDX-License-Identifier: Apache-2.0

package reviews_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/webhook"

	testadmission "github.com/cluster-chandler/chandler/test/admission"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/process"
	"github.com/cluster-chandler/chandler/test/wait"
	"github.com/cluster-chandler/chandler/webhooks/reviews"
)

const (
	admission  = "/validate-something"
	conversion = "/convert"
	hook       = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclusterdelete/before-cluster-delete"
	// patience is how long what takes milliseconds may take on a busy machine. Silent clients are ended later than that.
	patience = 20 * time.Second
)

// api and stranger are addresses of clients, who are both on this host.
const api, stranger = "127.0.0.1", "127.0.0.2"

// served is a running server.
type served struct {
	t       *testing.T
	address string
}

// serve starts a server whose paths are all answered by one hook.
func serve(t *testing.T, answer http.HandlerFunc, options ...func(*reviews.Options)) *served {
	t.Helper()
	_, directory := testadmission.Certificate(t)
	o := reviews.Options{Options: webhook.Options{Host: "127.0.0.1", CertDir: directory}}
	address, err := process.FreeAddress()
	must.Succeed(t, err)
	tcp, err := net.ResolveTCPAddr("tcp", address)
	must.Succeed(t, err)
	o.Port = tcp.Port
	for _, option := range options {
		option(&o)
	}
	server, err := reviews.New(o)
	must.Succeed(t, err)
	for _, path := range []string{admission, conversion, hook} {
		server.Register(path, answer)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil)
	must.Succeed(t, err)
	wait.Until(t, patience, "the server is to start", func() error { return server.StartedChecker()(request) })
	return &served{t: t, address: address}
}

// dial opens a connection from an address, without TLS yet.
func (s *served) dial(from string) net.Conn {
	s.t.Helper()
	conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext(s.t.Context(), "tcp", s.address)
	must.Succeed(s.t, err)
	s.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// begin sends a part of a body from an address, and leaves the connection open.
func (s *served) begin(from, path string, length int, part string) net.Conn {
	s.t.Helper()
	conn, err := s.tryToBegin(from, path, length, part)
	must.Succeed(s.t, err)
	return conn
}

// tryToBegin is begin for a client that may have too many connections.
func (s *served) tryToBegin(from, path string, length int, part string) (net.Conn, error) {
	s.t.Helper()
	secured := tls.Client(s.dial(from), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	if err := secured.HandshakeContext(s.t.Context()); err != nil {
		return nil, err
	}
	_, err := fmt.Fprintf(secured, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, length, part)
	return secured, err
}

// ask returns the status of the answer to a request.
func (s *served) ask(from, path, body string, change ...func(*http.Request)) (int, error) {
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		DialContext:       (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext,
		ForceAttemptHTTP2: true,
	}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, "https://"+s.address+path, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	for _, c := range change {
		c(request)
	}
	response, err := (&http.Client{Transport: transport, Timeout: patience}).Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

// expect asks from the address of the API server, and wants a status.
func (s *served) expect(path, body string, status int, change ...func(*http.Request)) {
	s.t.Helper()
	if is, err := s.ask(api, path, body, change...); err != nil || is != status {
		s.t.Errorf("%s: %d, %v; want %d", path, is, err, status)
	}
}

// echo is a hook that sends the request back.
func echo(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }
