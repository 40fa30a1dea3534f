// SPDX-License-Identifier: Apache-2.0

package faulty

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/registry"
)

// maxBody is how much is kept of a request's body.
const maxBody = 64 << 10

// Server runs until the test ends.
type Server struct {
	// Host is its address, as in "127.0.0.1:35000".
	Host string

	good http.Handler
	tls  *tls.Config // nil: plain HTTP

	mu       sync.Mutex
	fault    Fault
	over     chan struct{} // closed when the fault is
	requests []Request
	server   *http.Server
}

// Request is one that came to a Server.
type Request struct {
	Method string
	// URI is path and query.
	URI    string
	Host   string
	Header http.Header
	Body   []byte
	// Certified tells whether the client showed a certificate.
	Certified bool
}

// String is method and URI.
func (r Request) String() string { return r.Method + " " + r.URI }

// Bytes is all of the request.
func (r Request) Bytes() []byte {
	var all bytes.Buffer
	fmt.Fprintf(&all, "%s %s\nHost: %s\n", r.Method, r.URI, r.Host)
	_ = r.Header.Write(&all) // to memory
	all.Write(r.Body)
	return all.Bytes()
}

// Start serves what good does, at a free port of 127.0.0.1, with a certificate of
// the authority; without an authority it is plain HTTP. A client may show a
// certificate of its own, and doesn't have to.
func Start(t testing.TB, authority *registry.Authority, good http.Handler) *Server {
	t.Helper()
	s := &Server{Host: "127.0.0.1:0", good: good}
	if authority != nil {
		certificate, key := authority.Issue(t)
		pair, err := tls.X509KeyPair(certificate, key)
		must.Succeed(t, err)
		s.tls = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequestClientCert}
	}
	s.Resume(t)
	t.Cleanup(s.Stop)
	return s
}

// Resume makes a server that was stopped serve again at its address.
func (s *Server) Resume(t testing.TB) {
	t.Helper()
	listener, err := net.Listen("tcp", s.Host)
	must.Succeed(t, err)
	s.Host = listener.Addr().String()
	server := &http.Server{Handler: http.HandlerFunc(s.serve), TLSConfig: s.tls.Clone(), ErrorLog: log.New(io.Discard, "", 0)}
	s.mu.Lock()
	s.server = server
	s.mu.Unlock()
	go func() { // both end with an error when it is stopped
		if s.tls == nil {
			_ = server.Serve(listener)
		} else {
			_ = server.ServeTLS(listener, "", "")
		}
	}()
}

// Stop ends all connections, and refuses new ones.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.server.Close() // of the listener, which may be closed already
}

// URL of a path.
func (s *Server) URL(path string) string {
	if s.tls == nil {
		return "http://" + s.Host + path
	}
	return "https://" + s.Host + path
}

// Fail makes the server fail from now on.
func (s *Server) Fail(fault Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault, s.over = fault, make(chan struct{})
}

// Heal ends that. Answers that are under way are then given as they should be.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault != nil {
		close(s.over)
	}
	s.fault = nil
}

// Requests are those that came since the last call.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests := s.requests
	s.requests = nil
	return requests
}

// Seen are those that the next call of Requests returns, too.
func (s *Server) Seen() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return // the client is gone
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	s.mu.Lock()
	s.requests = append(s.requests, Request{
		Method: r.Method, URI: r.URL.RequestURI(), Host: r.Host, Header: r.Header.Clone(), Body: body,
		Certified: r.TLS != nil && len(r.TLS.PeerCertificates) > 0,
	})
	fault, over := s.fault, s.over
	s.mu.Unlock()
	if fault == nil {
		s.good.ServeHTTP(w, r)
		return
	}
	fault(answer{w, r, s.good, over})
}
