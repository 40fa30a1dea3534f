// SPDX-License-Identifier: Apache-2.0

// Package held tells tests whether answers count as long as they are used, and no longer.
package held

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/cluster-chandler/chandler/fleet/budget"
)

// Answers returns a function that stands for the arrival of an answer in a context. It fails the test if the answer doesn't count any
// more once it is read. At its end the test fails if none arrived, or if one still counts.
func Answers(t testing.TB) (arrive func(context.Context)) {
	t.Helper()
	memory := budget.New(budget.Limits{})
	var arrived atomic.Bool
	t.Cleanup(func() {
		if !arrived.Load() {
			t.Error("no answer arrived")
		}
		if u := memory.Usage(); u.Claimed != 0 {
			t.Error("an answer counts that isn't used any more")
		}
	})
	return func(ctx context.Context) {
		arrived.Store(true)
		before := memory.Usage().Claimed
		answer := memory.Claim(budget.Tenant{}, 1)
		answer.Try(1)
		answer.Release(ctx)
		if memory.Usage().Claimed == before {
			t.Error("an answer doesn't count any more while it is used")
		}
	}
}
