// SPDX-License-Identifier: Apache-2.0

// Package wait asks again and again what can't be watched.
package wait

import (
	"errors"
	"testing"
	"time"
)

// interval is how often is asked.
const interval = 100 * time.Millisecond

// ErrFinal is in the error of a check that will never pass: nobody waits any longer.
var ErrFinal = errors.New("no use to wait")

// Until asks until check has nothing to say against it, and returns how long that took. If the time is up, the test
// fails with the reason, and with what check said last.
func Until(t testing.TB, timeout time.Duration, reason string, check func() error) time.Duration {
	t.Helper()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for start := time.Now(); ; {
		err := check()
		if err == nil {
			return time.Since(start)
		}
		if time.Since(start) > timeout || errors.Is(err, ErrFinal) {
			t.Fatalf("%s: not within %s: %v", reason, time.Since(start).Round(time.Second), err)
		}
		<-tick.C
	}
}

// Throughout fails the test as soon as check has something to say.
func Throughout(t testing.TB, duration time.Duration, reason string, check func() error) {
	t.Helper()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for deadline := time.Now().Add(duration); time.Now().Before(deadline); <-tick.C {
		if err := check(); err != nil {
			t.Fatalf("%s: %v", reason, err)
		}
	}
}
