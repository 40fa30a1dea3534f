// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"time"

	"github.com/cluster-chandler/chandler/internal/retry"
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
	o.RetryAfter = retry.Delivery.After(b.retries)
	b.retries++
	b.until = now.Add(o.RetryAfter)
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
