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
	"time"

	"golang.org/x/sync/semaphore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Limits of the requests of one kind. The kinds share nothing.
type Limits struct {
	// Bytes that one body may have, and all that are answered at the same time together.
	Bytes int64
	// Values that the JSON of one body may have, keys included. "{}," may become a struct of hundreds of bytes.
	Values int
	// Room is for all bodies of which a part has come, and for answers under way, in bytes.
	Room int64
	// Grace is how long a body may take until it has to come at the rate of minRate.
	Grace time.Duration
}

// Kind of requests.
type Kind string

// Kinds of requests.
const (
	Admission  Kind = "admission"
	Conversion Kind = "conversion"
	Hook       Kind = "hook"
)

// kindOf returns the kind of the requests to a path.
func kindOf(path string) Kind {
	switch {
	case path == "/convert":
		return Conversion
	case strings.HasPrefix(path, "/hooks."):
		return Hook
	}
	return Admission
}

// DefaultLimits returns the limits of all kinds. For admission an API server sends two objects of at most 3 MiB each. It
// converts objects one by one. Cluster API sends a hook one Cluster.
func DefaultLimits() map[Kind]Limits {
	object := Limits{Bytes: 7 << 20, Values: 100_000, Room: 16 << 20, Grace: 5 * time.Second}
	return map[Kind]Limits{
		Admission: object, Conversion: object,
		Hook: {Bytes: 1 << 20, Values: 20_000, Room: 4 << 20, Grace: 5 * time.Second},
	}
}

const (
	// minRate is how fast a body has to come, on average and in bytes per second.
	minRate = 64 << 10
	// minWeight is what each request counts as, in bytes: so many small ones have a bound, too.
	minWeight = 16 << 10
	// readTimeout is how long a body may take in all, and answerTimeout its answer. API servers wait no longer.
	readTimeout, answerTimeout = 30 * time.Second, 30 * time.Second
)

// limiter bounds the requests of one kind.
type limiter struct {
	Limits
	room  *room
	slots *semaphore.Weighted
}

// handler returns one that has the hook answer a request once all of it is there and there is a slot. A client that is
// slow, with its request or with reading the answer, holds no slot.
func (l *limiter) handler(hook http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readTimeout+answerTimeout)
		defer cancel()
		control := http.NewResponseController(w)
		s := l.room.enter(clientOf(r.RemoteAddr), func() { cancel(); _ = control.SetReadDeadline(longAgo) })
		defer s.leave()
		answer := &answer{header: w.Header(), status: http.StatusOK}
		err := l.answer(answer, r.WithContext(ctx), control, s, hook)
		if err != nil {
			status := http.StatusServiceUnavailable
			if refusal, ok := errors.AsType[*apierrors.StatusError](err); ok {
				status = int(refusal.ErrStatus.Code)
			}
			http.Error(w, err.Error(), status)
			return
		}
		s.renew(func() { _ = control.SetWriteDeadline(longAgo) })
		w.WriteHeader(answer.status)
		_, _ = w.Write(answer.body.Bytes()) // nobody else could be told of an error
	})
}

// longAgo is a deadline that has passed.
var longAgo = time.Unix(1, 0)

// refuse returns the error of a request that isn't answered.
func refuse(status int32, why string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: status, Message: why}}
}

// answer reads the body, waits for a slot, and has the hook answer. Nothing ends the share while the hook works.
func (l *limiter) answer(a *answer, r *http.Request, control *http.ResponseController, s *share, hook http.Handler) error {
	body, err := l.read(control, s, r)
	if err != nil {
		return err
	}
	s.complete()
	weight := max(int64(len(body)), minWeight)
	if err := l.slots.Acquire(r.Context(), weight); err != nil {
		return refuse(http.StatusServiceUnavailable, "too many requests are under way")
	}
	defer l.slots.Release(weight)
	if !s.protect() {
		return errNoRoom
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	hook.ServeHTTP(a, r)
	if !s.resize(max(int64(a.body.Cap()), minWeight)) { // in the place of the request
		return errNoRoom
	}
	return nil
}

// answer is what a hook says. It is sent once the slot is free again.
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
