// SPDX-License-Identifier: Apache-2.0

// Package reviews bounds what requests to webhooks may take, and who may send them. controller-runtime
// reads a ConversionReview without a limit.
package reviews

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

const (
	// largest review in bytes.
	largest = 16 << 20
	// together is what the bodies of all reviews under way may have, in bytes: those of
	// admission, and again those of conversion, to which anybody may send some.
	together = 16 << 20
	// least is what each counts as, so that small ones have a bound, too.
	least = 128 << 10
	// patience is how long a review may take to come. API servers wait no longer.
	patience = 30 * time.Second
)

// conversionPath is served to all: API servers show no certificate when they convert.
const conversionPath = "/convert"

// Options of [Limited].
type Options struct {
	// ClientCertificates has admission answer only those that show a certificate by an
	// authority that [ClientCA] was told of.
	ClientCertificates bool
}

// Limited returns the server with limits on all that it serves. They are on the size of a
// request, the memory of all requests, and the time that one takes to come.
func Limited(inner webhook.Server, o Options) webhook.Server {
	return &server{Server: inner, options: o, admission: semaphore.NewWeighted(together), conversion: semaphore.NewWeighted(together)}
}

type server struct {
	webhook.Server
	options Options

	admission, conversion *semaphore.Weighted
}

// Register serves a webhook at the path.
func (s *server) Register(path string, hook http.Handler) {
	certified, room := s.options.ClientCertificates, s.admission
	if path == conversionPath {
		certified, room = false, s.conversion
	}
	s.Server.Register(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if certified && (r.TLS == nil || len(r.TLS.VerifiedChains) == 0) {
			http.Error(w, "a client certificate is required", http.StatusUnauthorized)
			return
		}
		serve(w, r, hook, room)
	}))
}

// serve has the hook answer once there is room for the request.
func serve(w http.ResponseWriter, r *http.Request, hook http.Handler, room *semaphore.Weighted) {
	switch {
	case r.ContentLength < 0: // API servers always say it
		http.Error(w, "a review needs a Content-Length", http.StatusLengthRequired)
		return
	case r.ContentLength > largest:
		http.Error(w, "the review is too large", http.StatusRequestEntityTooLarge)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	size := max(r.ContentLength, least)
	if err := room.Acquire(ctx, size); err != nil {
		http.Error(w, "too many reviews are under way", http.StatusServiceUnavailable)
		return
	}
	defer room.Release(size)
	if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(patience)); err != nil {
		http.Error(w, "the connection can't have a deadline", http.StatusInternalServerError)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, largest)
	hook.ServeHTTP(w, r)
}

// ClientCA returns what has a server ask for a certificate by an authority in the file.
// A handshake without one succeeds: conversion has to.
func ClientCA(file string) (func(*tls.Config), error) {
	pool, err := cert.NewPool(file)
	if err != nil {
		return nil, fmt.Errorf("reading the authorities of clients: %w", err)
	}
	return func(c *tls.Config) { c.ClientCAs, c.ClientAuth = pool, tls.VerifyClientCertIfGiven }, nil
}
