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
func serve(t *testing.T, answer http.HandlerFunc, limits map[reviews.Kind]reviews.Limits, options ...func(*reviews.Options)) *served {
	t.Helper()
	_, directory := testadmission.Certificate(t)
	o := reviews.Options{Limits: limits, Options: webhook.Options{Host: "127.0.0.1", CertDir: directory}}
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

// secure makes the connection one of HTTP/1.1 over TLS.
func (s *served) secure(conn net.Conn) net.Conn {
	s.t.Helper()
	secured := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	must.Succeed(s.t, secured.HandshakeContext(s.t.Context()))
	return secured
}

// begin sends a part of a body from an address, and leaves the connection open.
func (s *served) begin(from, path string, length int, part string) net.Conn {
	s.t.Helper()
	conn := s.secure(s.dial(from))
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, length, part); err != nil {
		s.t.Fatal(err)
	}
	return conn
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

// awaitRoom asks from an address until there is room for the body. On a busy machine it comes slower at first than bodies of
// which nothing more comes.
func (s *served) awaitRoom(from, body string) {
	s.t.Helper()
	wait.Until(s.t, patience, "the quick are to get room", func() error {
		status, err := s.ask(from, admission, body)
		if err == nil && status != http.StatusOK {
			return fmt.Errorf("the answer is %d", status)
		}
		return err
	})
}

// echo is a hook that sends the request back.
func echo(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }
