// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"testing"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/checks"
	"github.com/cluster-chandler/chandler/test/addons"
)

// The longer a condition doesn't hold, the less often it is looked at.
func TestWaitsGrow(t *testing.T) {
	const s = time.Second
	start, memory, a := time.Unix(0, 0), &checks.Memory{}, addons.Wanted("platform", "web")
	shut, open := []addonsv1.ObjectsCondition{{Expression: "false"}}, []addonsv1.ObjectsCondition{{Expression: "true"}}
	for _, step := range []struct {
		field      string
		conditions []addonsv1.ObjectsCondition
		at, want   time.Duration
	}{
		{"preconditions", shut, 0, s}, {"preconditions", shut, s, s}, {"preconditions", shut, 4 * s, s}, {"preconditions", shut, 8 * s, 2 * s},
		{"preconditions", shut, 40 * s, 10 * s}, {"preconditions", shut, 120 * s, 30 * s}, {"preconditions", shut, time.Hour, 30 * s},
		{"postconditions", shut, time.Hour, s}, {"postconditions", shut, time.Hour + 8*s, 2 * s},
		{"preconditions", open, time.Hour, 0}, {"preconditions", shut, 2 * time.Hour, s}, {"postconditions", shut, 2 * time.Hour, 30 * s},
	} {
		unmet, err := checks.Checks{Addon: &a, Memory: memory, Now: start.Add(step.at)}.First(t.Context(), step.field, step.conditions)
		if isUnmet := unmet != nil; err != nil || isUnmet != (step.want > 0) || isUnmet && unmet.RetryAfter != step.want {
			t.Errorf("%s after %s: %+v, %v; want %s", step.field, step.at, unmet, err, step.want)
		}
	}
}
