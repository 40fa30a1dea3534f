// SPDX-License-Identifier: Apache-2.0

package deliver

import "time"

// Backoff between attempts that failed.
const (
	firstRetry = 10 * time.Second
	lastRetry  = 5 * time.Minute
)

// backoff of an add-on that failed.
type backoff struct {
	digest  string // that failed
	retries int
	until   time.Time
	outcome Outcome
}

// fail returns the outcome with the time of the next attempt, and remembers it.
func (b *backoff) fail(now time.Time, digest string, o Outcome) Outcome {
	if b.digest != digest {
		*b = backoff{digest: digest}
	}
	delay := lastRetry
	if b.retries < 6 {
		delay = min(firstRetry<<b.retries, lastRetry)
	}
	b.retries++
	b.until = now.Add(delay)
	o.RetryAfter = delay
	b.outcome = o
	return o
}

// waiting returns the outcome of the last attempt while it is too early for the next.
func (b *backoff) waiting(now time.Time, digest string) (Outcome, bool) {
	if b.digest != digest || !now.Before(b.until) {
		return Outcome{}, false
	}
	o := b.outcome
	o.RetryAfter = b.until.Sub(now)
	return o, true
}
