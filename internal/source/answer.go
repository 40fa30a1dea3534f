// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"time"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// ownCredentials is how often the instance's own credentials are looked at while they
// don't do: their change is no event.
const ownCredentials = 10 * time.Second

// answer is what was found out about a chart on another host: its digest, or why not.
type answer struct {
	digest string
	asked  time.Time // not set of a failure

	err         *failure.Error
	until       time.Time // ask again
	failures    int       // in a row
	credentials string    // that were used
}

// error is nil if there is none; an *Error that is nil would not be.
func (a answer) error() error {
	if a.err == nil {
		return nil
	}
	return a.err
}

// recall returns an answer that is still good.
func (r *remote) recall(ctx context.Context, question string, ref reference.Reference) (answer, bool) {
	known, found := r.answers.Get(question)
	if !found || known.err == nil {
		return known, found
	}
	left := known.until.Sub(r.clock.Now())
	if left <= 0 || known.credentials != r.access.Version(ctx, ref) {
		return answer{}, false
	}
	known.err = again(known.err, left, ref)
	return known, true
}

// remember keeps a failure for a time that grows with their number.
func (r *remote) remember(question string, ref reference.Reference, credentials string, err error) answer {
	var failed *failure.Error
	if !errors.As(err, &failed) {
		failed = &failure.Error{Reason: failure.SourceUnavailable, Err: err} // of the API server, as for a Secret
	}
	before, _ := r.answers.Get(question)
	failures := 0
	if before.err != nil && before.credentials == credentials {
		failures = before.failures + 1
	}
	delay := max(failure.Backoff(failed.Reason, failures), failed.RetryAfter)
	now := answer{err: failed, until: r.clock.Now().Add(delay), failures: failures, credentials: credentials}
	r.answers.Put(question, now)
	now.err = again(failed, delay, ref)
	return now
}

// again is the error with the time after which to come back.
func again(e *failure.Error, left time.Duration, ref reference.Reference) *failure.Error {
	repeated := *e
	repeated.Wait = e.Wait || e.Reason == failure.SourceUnavailable
	if repeated.RetryAfter = left; e.Reason == failure.SourceUnauthorized && ref.SecretRef() == nil {
		repeated.RetryAfter = min(left, ownCredentials)
	}
	return &repeated
}
