// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"errors"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"
)

// A process counts on its grant from before it sent the heartbeat whose answer showed it.
func TestLifetime(t *testing.T) {
	clock := testclock.NewFakeClock(time.Now())
	l := lifetime{clock: clock, length: 4 * time.Second}
	if l.left() > 0 {
		t.Error("it counts on what it never was told")
	}
	l.sent = clock.Now()
	for _, tc := range []struct{ passes, left time.Duration }{{time.Second, 3 * time.Second}, {2 * time.Second, time.Second}, {time.Second, 0}} {
		clock.Step(tc.passes)
		if l.left() != tc.left {
			t.Errorf("left() = %s, want %s", l.left(), tc.left)
		}
	}
}

// TestDefaultHeartbeat outlives a machine so loaded that nothing could be written for 27 seconds, which was seen.
func TestDefaultHeartbeat(t *testing.T) {
	const stall = 27 * time.Second
	clock := testclock.NewFakeClock(time.Now())
	r := Registration{o: Options{Heartbeat: DefaultHeartbeat, Clock: clock}}
	r.life = lifetime{clock: clock, length: time.Duration(r.expirySeconds()) * time.Second * 2 / 3}
	r.life.sent = clock.Now()
	clock.Step(r.untilNext(nil)) // the stall begins when the next one is due
	clock.Step(stall)
	if left := r.life.left(); left < r.untilNext(errors.New("it failed")) {
		t.Errorf("after %s the process ends in %s, and has no time for another try", stall, left)
	}
}
