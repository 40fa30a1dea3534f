// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"time"

	"k8s.io/utils/clock"
)

// lifetime is how long this process may count on what it wrote. Others see a write
// later than it was sent, and wait a third longer than this.
type lifetime struct {
	clock  clock.PassiveClock
	length time.Duration
	sent   time.Time // of the last successful write; zero before the first
	// lapsed: an answer came after the deadline. What was claimed before it is worth
	// nothing, even if later writes succeed.
	lapsed bool
}

// fenceAfter is when a process has to end that can't write.
func fenceAfter(expirySeconds int32) time.Duration {
	return time.Duration(expirySeconds) * time.Second * 2 / 3
}

// begin notes that a claim, sent at a time, was stored just now.
func (l *lifetime) begin(sent time.Time) {
	l.sent = sent
	l.lapsed = l.left() <= 0
}

// extend notes that another write, sent at a time, was stored just now.
func (l *lifetime) extend(sent time.Time) {
	late := l.sent.IsZero() || l.left() <= 0
	l.sent = sent
	l.lapsed = l.lapsed || late || l.left() <= 0
}

// isValid reports whether nobody else may have counted this process out since it
// claimed.
func (l *lifetime) isValid() bool { return !l.sent.IsZero() && !l.lapsed && l.left() > 0 }

// left is the time until the process has to end, unless it writes before.
func (l *lifetime) left() time.Duration { return l.length - l.clock.Since(l.sent) }
