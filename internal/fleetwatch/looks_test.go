// SPDX-License-Identifier: Apache-2.0

package fleetwatch

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cluster-chandler/chandler/fleet"
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
		changes []time.Duration // of CRDs
		kinds   []time.Duration // when discovery shows another kind
		looks   string
		told    string
	}{
		"one change":                  {[]time.Duration{0}, nil, "[2s 10s 30s 1m15s]", "[]"},
		"two at once":                 {[]time.Duration{0, time.Second}, nil, "[2s 10s 30s 1m15s 1m27s 1m35s 1m55s 2m40s]", "[]"},
		"one after another, later":    {[]time.Duration{0, 20 * time.Minute}, nil, "[2s 10s 30s 1m15s 20m2s 20m10s 20m30s 21m15s]", "[]"},
		"a new kind at once":          {[]time.Duration{0}, []time.Duration{0}, "[2s 10s 30s 1m15s]", "[2s]"},
		"a new kind after a minute":   {[]time.Duration{0}, []time.Duration{time.Minute}, "[2s 10s 30s 1m15s]", "[1m15s]"},
		"a kind that comes amid them": {every(60*time.Millisecond, time.Minute), []time.Duration{35 * time.Second}, "[2s 10s 30s 1m15s 1m17s 1m25s 1m45s 2m30s]", "[1m15s]"},
	} {
		t.Run(name, func(t *testing.T) {
			looks, told := looksAt(t, tc.changes, tc.kinds, time.Hour)
			if fmt.Sprint(looks) != tc.looks || fmt.Sprint(told) != tc.told {
				t.Errorf("looks at %v, told at %v; want %s, %s", looks, told, tc.looks, tc.told)
			}
		})
	}
	const day = 24 * time.Hour
	if looks, _ := looksAt(t, every(time.Second, day), nil, day); len(looks) > 24*12*len(lookPauses) {
		t.Errorf("%d looks in a day of changes", len(looks))
	}
}

// looksAt returns when kinds are discovered, and when others are told of, from the first change on. The kinds
// of before are known.
func looksAt(t *testing.T, changes, kinds []time.Duration, until time.Duration) (looks, told []time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		start, heard := time.Now(), make(chan struct{}, 1)
		go lookAtKinds(ctx, heard, func() (fleet.Facts, error) {
			at, known := time.Since(start), fleet.Facts{}
			looks = append(looks, at)
			for _, comes := range kinds {
				if comes <= at {
					known.APIVersions = append(known.APIVersions, "v1")
				}
			}
			return known, nil
		}, func() { told = append(told, time.Since(start)) })
		for _, at := range changes {
			time.Sleep(at - time.Since(start))
			select {
			case heard <- struct{}{}:
			default:
			}
		}
		time.Sleep(until - time.Since(start))
		cancel()
	})
	return looks, told
}
