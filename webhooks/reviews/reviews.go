// SPDX-License-Identifier: Apache-2.0

// Package reviews serves webhooks to clients that nobody knows, and bounds what their connections and requests may
// take. controller-runtime's own server reads headers of 1 MiB, and bodies at any pace.
package reviews

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/fleet/jsonsize"
)

// kind of requests. The kinds share nothing.
type kind string

const (
	admission  kind = "admission"
	conversion kind = "conversion"
	hook       kind = "hook"
)

// kindOf returns the kind of the requests to a path.
func kindOf(path string) kind {
	switch {
	case path == "/convert":
		return conversion
	case strings.HasPrefix(path, "/hooks."):
		return hook
	}
	return admission
}

// maxBytes is how large a body may be, and all together that are answered at the same time, by their text or by what their
// values take (package jsonsize). For admission an API server sends two objects, of which it stores at most 1.5 MiB each. It
// converts objects one by one. Cluster API sends a hook one Cluster.
var maxBytes = map[kind]int64{admission: 3 << 20, conversion: 3 << 20, hook: 1 << 20}

// limiter bounds the requests of one kind.
type limiter struct {
	slots    *budget.Budget // shared by clients
	answered *budget.Budget // bytes of bodies that are answered now
	maxBytes int64
}

func newLimiter(maxBytes int64) *limiter {
	return &limiter{
		slots:    budget.New(budget.Limits{All: maxRequests, Namespace: requestsOfClient}),
		answered: budget.New(budget.Limits{All: maxBytes}),
		maxBytes: maxBytes,
	}
}

// busy is why a request isn't answered that waits for too long.
const busy = "too many requests of this client, or large ones of others, are under way"

// handler returns one that has the hook answer. A request has one slot from before its body is read until its answer is sent.
func (l *limiter) handler(hook http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), answerTimeout)
		defer cancel()
		ctx = budget.WithTenant(ctx, budget.Tenant{Namespace: clientOf(r.RemoteAddr)})
		slot := l.slots.Claim(budget.TenantOf(ctx), 1)
		defer slot.End()
		if slot.Grow(ctx, 1) != nil {
			http.Error(w, busy, http.StatusServiceUnavailable)
			return
		}
		answer := &answer{header: w.Header(), status: http.StatusOK}
		l.answer(answer, r.WithContext(ctx), http.MaxBytesReader(w, r.Body, l.maxBytes), hook)
		w.WriteHeader(answer.status)
		_, _ = w.Write(answer.body.Bytes()) // nobody else could be told of an error
	})
}

// answer reads the body, and has the hook answer once there is room to decode it. No client can keep that room: the answer
// is sent later.
func (l *limiter) answer(a *answer, r *http.Request, from io.Reader, hook http.Handler) {
	var body bytes.Buffer
	body.Grow(int(min(max(r.ContentLength, 0), l.maxBytes)) + bytes.MinRead)
	_, err := body.ReadFrom(from)
	size := int64(jsonsize.Of(body.Bytes()))
	room := l.answered.Claim(budget.TenantOf(r.Context()), size)
	defer room.End()
	switch _, tooLarge := errors.AsType[*http.MaxBytesError](err); {
	case tooLarge, size > l.maxBytes:
		http.Error(a, "the request is too large, or has too many values", http.StatusRequestEntityTooLarge)
	case err != nil:
		http.Error(a, "the request doesn't come, or too slowly", http.StatusRequestTimeout)
	case room.Grow(r.Context(), size) != nil:
		http.Error(a, busy, http.StatusServiceUnavailable)
	default:
		r.Body = io.NopCloser(&body)
		hook.ServeHTTP(a, r)
	}
}

// answer is what a hook says.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header returns the headers of the answer.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader sets the status of the answer.
func (a *answer) WriteHeader(status int) { a.status = status }

// Write adds to the answer.
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }
