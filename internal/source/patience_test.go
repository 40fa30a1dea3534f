// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sync/singleflight"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/cluster-chandler/chandler/internal/source/failure"
)

// TestSharedPatience has one reconcile wait for several flights that don't land.
func TestSharedPatience(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	shared := WithSharedPatience(t.Context())
	slow := make(chan singleflight.Result)
	expectPending := func(after time.Duration) {
		t.Helper()
		done := make(chan error)
		go func() {
			_, err := landed(shared, clock, slow)
			done <- err
		}()
		for !clock.HasWaiters() {
			time.Sleep(time.Millisecond)
		}
		clock.Step(after - 1)
		select {
		case err := <-done:
			t.Fatalf("it gave up before %s: %v", after, err)
		default:
		}
		clock.Step(1)
		var pending *failure.Error
		if err := <-done; !errors.As(err, &pending) || pending.Reason != failure.ArtifactPending {
			t.Errorf("after %s: %v", after, err)
		}
	}
	expectPending(patience)
	expectPending(leastPatience)
	expectPending(leastPatience)

	quick := make(chan singleflight.Result, 1)
	quick <- singleflight.Result{Val: "here"}
	if result, err := landed(WithSharedPatience(t.Context()), clock, quick); err != nil || result.Val != "here" {
		t.Errorf("%v, %v", result.Val, err)
	}
}
