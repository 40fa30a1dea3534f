// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/registry"
)

// Options of Start.
type Options struct {
	// Token that reads the repositories. Without one, all of them are public.
	Token string
	// PlainHTTP serves without TLS.
	PlainHTTP bool
	// PageSize is how many releases a page has at most. Defaults to 100.
	PageSize int
	// WithoutDigests leaves the digests of files out, as older servers do.
	WithoutDigests bool
	// Now is the time at the server. Defaults to that of this host.
	Now func() time.Time
}

// Server serves until the test ends.
type Server struct {
	// Host is its address, as in "127.0.0.1:35000".
	Host string
	// Storage is the address that requests for files are redirected to.
	Storage string
	// CA is the certificate, in PEM, that both are signed by. None with PlainHTTP.
	CA []byte

	options   Options
	tls       *tls.Config
	listening []*http.Server

	mu           sync.Mutex
	repositories map[string][]*Release
	ids          int64
	requests     []string
	leaked       []string
	limits       limits
	intercept    func(http.ResponseWriter, *http.Request) bool
}

// Start starts a server without any repository.
func Start(t testing.TB, options Options) *Server {
	t.Helper()
	if options.PageSize == 0 {
		options.PageSize = maxPageSize
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	s := &Server{options: options, repositories: map[string][]*Release{}, limits: limits{remaining: hourly}}
	if !options.PlainHTTP {
		authority := registry.NewAuthority(t)
		certificate, key := authority.Issue(t)
		pair, err := tls.X509KeyPair(certificate, key)
		must.Succeed(t, err)
		s.CA = authority.PEM
		s.tls = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	}
	s.Host, s.Storage = "127.0.0.1:0", "127.0.0.1:0"
	s.Resume(t)
	t.Cleanup(s.Stop)
	return s
}

// Resume serves again, at the same addresses and with the same content, after Stop.
func (s *Server) Resume(t testing.TB) {
	t.Helper()
	s.Host = s.listen(t, s.Host, s.api())
	s.Storage = s.listen(t, s.Storage, http.HandlerFunc(s.storage))
}

func (s *Server) listen(t testing.TB, address string, handler http.Handler) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	must.Succeed(t, err)
	at := listener.Addr().String()
	if s.tls != nil {
		listener = tls.NewListener(listener, s.tls)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	s.listening = append(s.listening, server)
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Printf("serving at %s: %v", at, err)
		}
	}()
	return at
}

// Stop ends all connections, and answers no more until Resume.
func (s *Server) Stop() {
	for _, server := range s.listening {
		_ = server.Close() // connections break off, as they are to
	}
	s.listening = nil
}

// URL of a repository, as in "owner/name".
func (s *Server) URL(repository string) string { return s.scheme() + s.Host + "/" + repository }

// API is where the API is if it isn't looked for at /api/v3.
func (s *Server) API() string { return s.scheme() + s.Host }

func (s *Server) scheme() string {
	if s.tls == nil {
		return "http://"
	}
	return "https://"
}

// Requests are those answered since the last call, as "GET /api/v3/repos/... 200" or
// "GET storage/... 200".
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests := s.requests
	s.requests = nil
	return requests
}

// Leaked are the credentials that the storage host was shown.
func (s *Server) Leaked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaked
}

// Intercept lets a function answer requests to the API in the server's place: those
// for which it returns true. Nil ends that.
func (s *Server) Intercept(by func(http.ResponseWriter, *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.intercept = by
}
