// SPDX-License-Identifier: Apache-2.0

package fleetwatch

import (
	"fmt"
	"testing"
	"time"
)

// An operator that writes to its CRDs all the time costs a few discoveries. A kind that
// comes to a cluster is seen in seconds, at the latest after the aggregator's round.
func TestLooksAtKinds(t *testing.T) {
	every := func(step, until time.Duration) (changes []time.Duration) {
		for at := time.Duration(0); at < until; at += step {
			changes = append(changes, at)
		}
		return changes
	}
	for name, tc := range map[string]struct {
		changes []time.Duration
		news    []time.Duration // each is seen by the first look after it
		want    string
	}{
		"one change":                  {[]time.Duration{0}, nil, "[2s 1m15s]"},
		"two at once":                 {[]time.Duration{0, time.Second}, nil, "[2s 1m16s]"},
		"a second one soon":           {[]time.Duration{0, 5 * time.Second}, []time.Duration{0}, "[2s 12s 1m20s]"},
		"one after another, later":    {[]time.Duration{0, 20 * time.Minute}, nil, "[2s 1m15s 20m2s 21m15s]"},
		"a thousand in a minute":      {every(60*time.Millisecond, time.Minute), nil, "[2s 22s 1m2s 2m22s]"},
		"a kind that comes amid them": {every(60*time.Millisecond, time.Minute), []time.Duration{30 * time.Second}, "[2s 22s 1m2s 2m14.94s]"},
	} {
		t.Run(name, func(t *testing.T) {
			var l looks
			var got []time.Duration
			start := time.Now()
			for at := time.Duration(0); at < time.Hour; at += 10 * time.Millisecond {
				now := start.Add(at)
				if len(tc.changes) > 0 && at >= tc.changes[0] {
					l.heard(now)
					tc.changes = tc.changes[1:]
				}
				if next := l.next(); !next.IsZero() && !now.Before(next) {
					news := len(tc.news) > 0 && at >= tc.news[0]
					if news {
						tc.news = tc.news[1:]
					}
					l.looked(now, news)
					got = append(got, at)
				}
			}
			if fmt.Sprint(got) != tc.want {
				t.Errorf("looks at %v, want %s", got, tc.want)
			}
		})
	}
	steady := looks{}
	start, n := time.Now(), 0
	for now := start; now.Before(start.Add(24 * time.Hour)); now = now.Add(time.Second) {
		steady.heard(now)
		if !now.Before(steady.next()) {
			steady.looked(now, false)
			n++
		}
	}
	if n > 24*12+10 {
		t.Errorf("%d looks in a day of changes", n)
	}
}
