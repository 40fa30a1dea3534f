// SPDX-License-Identifier: Apache-2.0

// Package ui is a page for a browser that shows how a fleet is, on this machine alone and with the rights of who starts it. It reads
// the management cluster, and for the values of an add-on its workload cluster. It writes nothing.
package ui

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/printing"
	"github.com/cluster-chandler/chandler/internal/observed"
)

// files are the style sheet and the script. They load nothing else.
//
//go:embed style.css follow.js
var files embed.FS

const (
	// pause is between two readings of a fleet that changes.
	pause = 2 * time.Second
	// tryAgain is how long after an error the fleet is read again.
	tryAgain = 10 * time.Second
	// headerTimeout is how long a browser may take to ask.
	headerTimeout = 10 * time.Second
)

// Server has the fleet as it was read last.
type Server struct {
	client    client.WithWatch
	others    client.Client // knows all kinds
	namespace string        // "" for all

	mu      sync.Mutex
	fleet   *observed.Fleet
	problem error
	reading int // how often it was read
}

// New returns a server for a namespace, or for all with "". The other client knows all kinds: see [origins.Reader].
func New(c client.WithWatch, others client.Client, namespace string) *Server {
	return &Server{client: c, others: others, namespace: namespace, fleet: &observed.Fleet{}}
}

// Run answers at a listener until the context ends, and reads the fleet after each change.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	server := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: headerTimeout, BaseContext: func(net.Listener) context.Context { return ctx }}
	go s.follow(ctx)
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the page: %w", err)
	}
	return nil
}

func (s *Server) follow(ctx context.Context) {
	for ctx.Err() == nil {
		err := observed.Follow(ctx, s.client, s.namespace, pause, func() error { return s.Read(ctx) })
		s.set(nil, err)
		select {
		case <-ctx.Done():
		case <-time.After(tryAgain):
		}
	}
}

// Read reads the fleet.
func (s *Server) Read(ctx context.Context) error {
	f, err := observed.Read(ctx, s.client, s.namespace, labels.Everything())
	if err != nil {
		return err
	}
	s.set(f, nil)
	return nil
}

// set keeps a fleet, or with an error the one before.
func (s *Server) set(f *observed.Fleet, problem error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.problem = problem; f != nil {
		s.fleet = f
	}
	s.reading++
}

// Handler answers for all views.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /style.css", http.FileServerFS(files))
	mux.Handle("GET /follow.js", http.FileServerFS(files))
	mux.HandleFunc("GET /reading", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		_, _ = fmt.Fprint(w, s.reading)
	})
	for pattern, view := range views {
		mux.HandleFunc("GET "+pattern, func(w http.ResponseWriter, r *http.Request) { s.show(w, r, view) })
	}
	return guarded(mux)
}

// show writes a view. What charts and clusters say is escaped, and has nothing that turns the words of a line around.
func (s *Server) show(w http.ResponseWriter, r *http.Request, of view) {
	s.mu.Lock()
	q := &request{Request: r, client: s.client, others: s.others, fleet: s.fleet, namespace: s.namespace}
	p := &page{Problem: s.problem, Reading: s.reading, Path: r.URL.Path, At: s.fleet.At}
	s.mu.Unlock()
	status, out := http.StatusOK, &bytes.Buffer{}
	if err := of(q, p); err != nil {
		status, p.View, p.Problem = http.StatusBadGateway, "problem", err
		if errors.Is(err, errNotFound) {
			status = http.StatusNotFound
		}
	}
	if err := pages.ExecuteTemplate(out, "page", p); err != nil {
		http.Error(w, "Writing the page: "+err.Error(), http.StatusInternalServerError)
		return
	}
	text := printing.Clean(out.String())
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text))
}
