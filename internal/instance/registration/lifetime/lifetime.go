// SPDX-License-Identifier: Apache-2.0

// Package lifetime says how long a process may count on the grant of its scope, and when its heartbeats are due.
package lifetime

import (
	"math"
	"time"

	"k8s.io/utils/clock"
)

// beatsToExpiry is how many heartbeats fit into spec.expirySeconds.
const beatsToExpiry = 4

// Lifetime is of a process that holds a scope. The scope is taken from a holder that is silent
// for half as long again, as others see it, and they see a write later than it was sent.
type Lifetime struct {
	Clock clock.PassiveClock
	// Heartbeat is the time between two.
	Heartbeat time.Duration
	// Sent is when the last heartbeat was whose answer showed the grant; zero before the first.
	Sent time.Time
}

// ExpirySeconds returns after how many seconds without a heartbeat others may take the scope.
func (l *Lifetime) ExpirySeconds() int32 {
	return int32(math.Ceil((beatsToExpiry * l.Heartbeat).Seconds()))
}

// Length returns for how long the process may count on its grant after a heartbeat.
func (l *Lifetime) Length() time.Duration {
	return time.Duration(l.ExpirySeconds()) * time.Second * 2 / 3
}

// Left returns the time until the process has to end, unless it writes before.
func (l *Lifetime) Left() time.Duration { return l.Length() - l.Clock.Since(l.Sent) }

// UntilNext returns the time to the next heartbeat.
func (l *Lifetime) UntilNext() time.Duration { return max(l.Heartbeat-l.Clock.Since(l.Sent), 0) }

// Soon returns the time to the next heartbeat after one that failed.
func (l *Lifetime) Soon() time.Duration { return l.Heartbeat / beatsToExpiry }
