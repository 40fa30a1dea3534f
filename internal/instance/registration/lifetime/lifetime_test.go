// SPDX-License-Identifier: Apache-2.0

package lifetime_test

import (
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"

	"github.com/cluster-chandler/chandler/internal/instance/registration"
	"github.com/cluster-chandler/chandler/internal/instance/registration/lifetime"
)

// A process counts on its grant from before it sent the heartbeat whose answer showed it.
func TestLifetime(t *testing.T) {
	clock := testclock.NewFakeClock(time.Now())
	l := lifetime.Lifetime{Clock: clock, Heartbeat: 1500 * time.Millisecond}
	if l.ExpirySeconds() != 6 || l.Left() > 0 {
		t.Errorf("it expires after %d s, and counts on what it never was told for %s", l.ExpirySeconds(), l.Left())
	}
	l.Sent = clock.Now()
	for _, tc := range []struct{ passes, left, next time.Duration }{
		{time.Second, 3 * time.Second, 500 * time.Millisecond},
		{2 * time.Second, time.Second, 0},
		{time.Second, 0, 0},
	} {
		clock.Step(tc.passes)
		if l.Left() != tc.left || l.UntilNext() != tc.next {
			t.Errorf("%s are left, want %s; the next heartbeat is due in %s, want %s", l.Left(), tc.left, l.UntilNext(), tc.next)
		}
	}
}

// TestDefaultHeartbeat outlives a machine so loaded that nothing could be written for 27 seconds, which was seen.
func TestDefaultHeartbeat(t *testing.T) {
	const stall = 27 * time.Second
	clock := testclock.NewFakeClock(time.Now())
	l := lifetime.Lifetime{Clock: clock, Heartbeat: registration.DefaultHeartbeat, Sent: clock.Now()}
	clock.Step(l.UntilNext()) // the stall begins when the next one is due
	clock.Step(stall)
	if left := l.Left(); left < l.Soon() {
		t.Errorf("after %s the process ends in %s, and has no time for another try", stall, left)
	}
}
