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
	// maxBytes of a review.
	maxBytes = 16 << 20
	// maxBytesTogether is what the bodies of all reviews under way may have, in bytes: those of
	// admission, and again those of conversion, to which anybody may send some.
	maxBytesTogether = 16 << 20
	// minBytes is what each counts as, so that small ones have a bound, too.
	minBytes = 128 << 10
	// readTimeout is how long a review may take to come. API servers wait no longer.
	readTimeout = 30 * time.Second
)

// conversionPath is served to all: API servers show no certificate when they convert.
const conversionPath = "/convert"

// Limited returns the server with limits on all that it serves. They are on the size of a
// request, the memory of all requests, and the time that one takes to come. With clientCertificates
// admission answers only those that show a certificate by an authority that [ClientCA] was told of.
func Limited(inner webhook.Server, clientCertificates bool) webhook.Server {
	admission, conversion := semaphore.NewWeighted(maxBytesTogether), semaphore.NewWeighted(maxBytesTogether)
	return &server{Server: inner, clientCertificates: clientCertificates, admission: admission, conversion: conversion}
}

type server struct {
	webhook.Server
	clientCertificates    bool
	admission, conversion *semaphore.Weighted
}

// Register serves a webhook at the path.
func (s *server) Register(path string, hook http.Handler) {
	certified, room := s.clientCertificates, s.admission
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
	case r.ContentLength > maxBytes:
		http.Error(w, "the review is too large", http.StatusRequestEntityTooLarge)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), readTimeout)
	defer cancel()
	size := max(r.ContentLength, minBytes)
	if err := room.Acquire(ctx, size); err != nil {
		http.Error(w, "too many reviews are under way", http.StatusServiceUnavailable)
		return
	}
	defer room.Release(size)
	if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(readTimeout)); err != nil {
		http.Error(w, "the connection can't have a deadline", http.StatusInternalServerError)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBytes)
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
