// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"errors"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"
)

// Each step is sent, then takes some time until it is answered.
func TestLifetime(t *testing.T) {
	type step struct {
		write  string // "claim", "beat", or nothing
		before time.Duration
		takes  time.Duration
	}
	for name, tc := range map[string]struct {
		steps []step
		want  bool
	}{
		"nothing was written":                 {},
		"a write before any claim":            {steps: []step{{write: "beat"}}},
		"a claim":                             {steps: []step{{write: "claim"}}, want: true},
		"a claim that is answered too late":   {steps: []step{{write: "claim", takes: 4 * time.Second}}},
		"silence after a claim":               {steps: []step{{write: "claim"}, {before: 4 * time.Second}}},
		"heartbeats":                          {steps: []step{{write: "claim"}, {"beat", 3 * time.Second, 0}, {"beat", 3 * time.Second, 0}}, want: true},
		"it counts from before it was sent":   {steps: []step{{write: "claim"}, {"beat", 2 * time.Second, time.Second}, {before: 3 * time.Second}}},
		"an answer after the deadline":        {steps: []step{{write: "claim"}, {"beat", 3 * time.Second, time.Second}}},
		"later ones don't fix that":           {steps: []step{{write: "claim"}, {"beat", 3 * time.Second, time.Second}, {"beat", time.Second, 0}}},
		"another claim does":                  {steps: []step{{write: "claim"}, {"beat", 3 * time.Second, time.Second}, {"claim", time.Second, 0}}, want: true},
		"even if the one before is forgotten": {steps: []step{{write: "claim"}, {"claim", time.Hour, 0}, {"beat", time.Second, 0}}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			clock := testclock.NewFakeClock(time.Now())
			l := lifetime{clock: clock, length: 4 * time.Second}
			for _, s := range tc.steps {
				clock.Step(s.before)
				sent := clock.Now()
				clock.Step(s.takes)
				switch s.write {
				case "claim":
					l.begin(sent)
				case "beat":
					l.extend(sent)
				}
			}
			if got := l.isValid(); got != tc.want {
				t.Errorf("isValid() = %v, want %v", got, tc.want)
			}
		})
	}
}

// TestDefaultHeartbeat outlives a machine so loaded that nothing could be written for 27 seconds, which was seen.
func TestDefaultHeartbeat(t *testing.T) {
	const stall = 27 * time.Second
	clock := testclock.NewFakeClock(time.Now())
	r := Registration{o: Options{Heartbeat: DefaultHeartbeat, Clock: clock}}
	r.life = lifetime{clock: clock, length: time.Duration(r.expirySeconds()) * time.Second * 2 / 3}
	r.life.begin(clock.Now())
	clock.Step(r.untilNext(nil)) // the stall begins when the next one is due
	clock.Step(stall)
	if left := r.life.left(); left < r.untilNext(errors.New("it failed")) {
		t.Errorf("after %s the process ends in %s, and has no time for another try", stall, left)
	}
}
