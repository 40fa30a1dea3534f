// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// patience is how long what takes seconds may take on a busy machine.
const patience = 90 * time.Second

// pollInterval is how often is asked what can't be watched.
const pollInterval = 100 * time.Millisecond

// poll asks until check has nothing to say against it. It returns how long that took.
func poll(t *testing.T, timeout time.Duration, reason string, check func() error) time.Duration {
	t.Helper()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for start := time.Now(); ; {
		err := check()
		if err == nil {
			return time.Since(start)
		}
		if time.Since(start) > timeout || errors.Is(err, errEnded) {
			t.Fatalf("%s: not within %s: %v", reason, time.Since(start).Round(time.Second), err)
		}
		<-tick.C
	}
}

// throughout fails the test as soon as check has something to say.
func throughout(t *testing.T, duration time.Duration, reason string, check func() error) {
	t.Helper()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for deadline := time.Now().Add(duration); time.Now().Before(deadline); <-tick.C {
		if err := check(); err != nil {
			t.Fatalf("%s: %v", reason, err)
		}
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// lines are texts on lines of their own.
func lines(texts []string) string { return "\t" + strings.Join(texts, "\n\t") }
