// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"errors"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/deliver/memory"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/test/must"
)

var tenant = budget.Tenant{Namespace: "team", Cluster: "prod"}

func TestCallsCountUntilTheyEnd(t *testing.T) {
	of := budget.New(budget.Limits{Cluster: 100})
	ctx := budget.WithTenant(t.Context(), tenant)
	call := memory.New(ctx, of, clocktesting.NewFakeClock(time.Now()))
	for _, step := range []struct {
		take func() error
		want int64
	}{
		{func() error { return call.Hold(ctx, 10) }, 10},
		{func() error { return call.Hold(ctx, -4) }, 6},
		{func() error { return call.Spare(ctx, 5) }, 11},
		{func() error { return call.Spare(ctx, 3) }, 11},
		{func() error { return call.Spare(ctx, 7) }, 13},
		{func() error { call.End(); return nil }, 0},
	} {
		must.Succeed(t, step.take())
		must.Equal(t, step.want, of.Usage().Claimed, "claimed")
	}
	err := memory.New(ctx, of, clocktesting.NewFakeClock(time.Now())).Hold(ctx, 101)
	if failed, ok := errors.AsType[*object.Failure](err); !ok || failed.Reason != memory.ReasonTooLarge || failed.Kind != object.Rejected {
		t.Errorf("got %v", err)
	}
}

// A call waits a moment for what others have, and those of the same reconcile after it don't.
func TestCallsWaitOnce(t *testing.T) {
	of, clock := budget.New(budget.Limits{All: 100}), clocktesting.NewFakeClock(time.Now())
	others := of.Claim(budget.Tenant{Namespace: "others"}, 100)
	must.Equal(t, true, others.Try(100), "others have it")
	ctx, waited := memory.WithOneWait(budget.WithTenant(t.Context(), tenant))
	done := make(chan error)
	go func() { done <- memory.New(ctx, of, clock).Hold(ctx, 1) }()
	for !clock.HasWaiters() {
		time.Sleep(time.Millisecond)
	}
	must.Equal(t, false, waited(), "one waited in vain")
	clock.Step(time.Second)
	for _, err := range []error{<-done, memory.New(ctx, of, clock).Hold(ctx, 1)} {
		if !errors.Is(err, memory.ErrTaken) {
			t.Errorf("got %v", err)
		}
	}
	must.Equal(t, true, waited(), "one waited in vain")
	must.Equal(t, budget.Usage{Claimed: 100}, of.Usage(), "usage")
}
