// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
)

// TestRetriesAreSpread has many charts at a host that is down: they aren't asked for in
// step, and less and less often.
func TestRetriesAreSpread(t *testing.T) {
	const charts = 20
	sources, clock := remoteSources(t, Options{})
	for _, seconds := range []int{1, 2, 4, 8, 15, 15} {
		usual := time.Duration(seconds) * time.Second
		seen := map[time.Duration]bool{}
		for i := range charts {
			ref := inRegistry(fmt.Sprintf("oci://127.0.0.1:1/chart-%d", i), "1.0.0")
			_, err := sources.Resolve(t.Context(), ref)
			failed := asError(t, err)
			if longest := usual + usual/4; failed.Reason != failure.SourceUnavailable || failed.RetryAfter < usual || failed.RetryAfter > longest {
				t.Errorf("%s: again after %s, want %s to %s: %v", failed.Reason, failed.RetryAfter, usual, longest, err)
			}
			seen[failed.RetryAfter] = true
		}
		if len(seen) < charts/2 {
			t.Errorf("%d charts are asked for at %d different times only, after about %s", charts, len(seen), usual)
		}
		clock.Step(2 * usual)
	}
}
