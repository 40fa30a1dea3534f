// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/cluster-chandler/chandler/internal/source/failure"
)

const (
	// firstRetry is the time until the second try; each later one takes twice as long.
	firstRetry = time.Second
	// jitter is added at random, as part of the time, so that sources aren't asked in step.
	jitter = 0.25

	// The longest times between two tries.
	maxUnavailable = 15 * time.Second // the source may be back at any time
	maxNotFound    = time.Minute      // it may be published at any time
	maxRetry       = 5 * time.Minute  // somebody has to mend something

	// ownCredentials is how often the instance's own credentials are looked at
	// while they don't do: their change is no event.
	ownCredentials = 10 * time.Second
)

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
func (r *remote) recall(ctx context.Context, question string, ref Reference) (answer, bool) {
	known, found := r.answers.Get(question)
	if !found || known.err == nil {
		return known, found
	}
	left := known.until.Sub(r.clock.Now())
	if left <= 0 || known.credentials != r.access.version(ctx, ref) {
		return answer{}, false
	}
	known.err = again(known.err, left, ref)
	return known, true
}

// remember keeps a failure for a time that grows with their number.
func (r *remote) remember(question string, ref Reference, credentials string, err error) answer {
	var failed *failure.Error
	if !errors.As(err, &failed) {
		failed = &failure.Error{Reason: failure.SourceUnavailable, Err: err} // of the API server, as for a Secret
	}
	before, _ := r.answers.Get(question)
	failures := 0
	if before.err != nil && before.credentials == credentials {
		failures = before.failures + 1
	}
	delay := max(backoff(failed.Reason, failures), failed.RetryAfter)
	now := answer{err: failed, until: r.clock.Now().Add(delay), failures: failures, credentials: credentials}
	r.answers.Put(question, now)
	now.err = again(failed, delay, ref)
	return now
}

// again is the error with the time after which to come back.
func again(e *failure.Error, left time.Duration, ref Reference) *failure.Error {
	repeated := *e
	repeated.Wait = e.Wait || e.Reason == failure.SourceUnavailable
	if repeated.RetryAfter = left; e.Reason == failure.SourceUnauthorized && (ref.secretRef() == nil || ref.bound()) {
		repeated.RetryAfter = min(left, ownCredentials)
	}
	return &repeated
}

// backoff is the time until the next try.
func backoff(reason string, failures int) time.Duration {
	most := maxRetry
	switch reason {
	case failure.SourceUnavailable:
		most = maxUnavailable
	case failure.ArtifactNotFound, failure.SignatureMissing:
		most = maxNotFound
	}
	delay := firstRetry << min(failures, 16)
	return wait.Jitter(min(delay, most), jitter)
}
