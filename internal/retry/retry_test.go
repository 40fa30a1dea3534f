// SPDX-License-Identifier: Apache-2.0

package retry_test

import (
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/internal/retry"
)

func TestPausesDoubleUpToTheLongest(t *testing.T) {
	times := retry.Times{First: time.Minute, Longest: time.Hour}
	for earlier, want := range map[int]time.Duration{0: time.Minute, 1: 2 * time.Minute, 5: 32 * time.Minute, 6: time.Hour, 64: time.Hour, 1 << 40: time.Hour} {
		if got := times.After(earlier); got != want {
			t.Errorf("after %d pauses: %s, want %s", earlier, got, want)
		}
	}
}
