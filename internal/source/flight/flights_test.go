// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
)

// TestSharedPatience has one reconcile wait for several flights that don't land.
func TestSharedPatience(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	flights := New(clock)
	shared := WithSharedPatience(t.Context())
	expectPending := func(host string, after time.Duration) {
		t.Helper()
		done := make(chan error)
		go func() {
			_, err := Board(shared, flights, Route{Name: "slow from " + host, Host: host}, func(context.Context) (string, error) {
				<-t.Context().Done()
				return "", nil
			})
			done <- err
		}()
		for !clock.HasWaiters() {
			runtime.Gosched()
		}
		clock.Step(after - 1)
		select {
		case err := <-done:
			t.Fatalf("it gave up before %s: %v", after, err)
		default:
		}
		clock.Step(1)
		if err := <-done; reason(t, err) != failure.ArtifactPending {
			t.Errorf("after %s: %v", after, err)
		}
	}
	expectPending("one", Patience)
	expectPending("two", leastPatience)
	expectPending("two", leastPatience)
	shared = WithSharedPatience(t.Context())
	expectPending("one", leastPatience) // another reconcile, and a host that is known to be slow
	expectPending("three", Patience)

	quick, err := Board(shared, flights, Route{Name: "quick", Host: "one"}, func(context.Context) (string, error) { return "here", nil })
	if err != nil || quick != "here" {
		t.Errorf("%v, %v", quick, err)
	}
}

// What goes on without the reconcile isn't bound by its patience.
func TestFlightsArePatient(t *testing.T) {
	spent := WithPatience(t.Context(), 0)
	if left := patient(spent); left != leastPatience {
		t.Errorf("who has waited enough waits for %s", left)
	}
	if left := patient(WithPatience(t.Context(), time.Minute)); left != time.Minute {
		t.Errorf("who may wait for a minute waits for %s", left)
	}
	if left := patient(onItsOwn(spent)); left != endless {
		t.Errorf("what goes on waits for %s only", left)
	}
}

// A flight that fails although nobody could wait for it is told to those it wakes: they
// don't begin it anew.
func TestFailuresThatWakeAreTold(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	flights := New(clock)
	let, begun, woken := make(chan struct{}), atomic.Int32{}, make(chan struct{}, 10)
	fly := func() error {
		_, err := Board(WithWaker(t.Context(), Waiter{Kind: "me"}, func() { woken <- struct{}{} }), flights, Route{Name: "x"}, func(context.Context) (int, error) {
			begun.Add(1)
			<-let
			return 0, failure.Changed()
		})
		return err
	}
	done := make(chan error)
	go func() { done <- fly() }()
	for !clock.HasWaiters() {
		runtime.Gosched()
	}
	clock.Step(Patience)
	if err := <-done; reason(t, err) != failure.ArtifactPending {
		t.Fatal(err)
	}
	close(let)
	<-woken
	if err := fly(); reason(t, err) != failure.ArtifactChanged || begun.Load() != 1 {
		t.Errorf("%v after %d flights", err, begun.Load())
	}
	clock.Step(2 * failure.FirstRetry)
	if err := fly(); reason(t, err) != failure.ArtifactChanged || begun.Load() != 2 {
		t.Errorf("%v after %d flights", err, begun.Load())
	}
}

// A flight goes on when the caller leaves whose time is over, and wakes him as well.
func TestFlightsOutliveCallers(t *testing.T) {
	flights := New(clock.RealClock{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	let, woken := make(chan struct{}), make(chan struct{})
	_, err := Board(WithWaker(ctx, Waiter{Kind: "me"}, func() { close(woken) }), flights, Route{Name: "x"}, func(ctx context.Context) (int, error) {
		<-let
		return 1, ctx.Err()
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	close(let)
	<-woken
}

// A failure is told while it is asked again, but not for ever: what was wrong once says
// nothing of a source that answers now.
func TestOldFailuresAreForgotten(t *testing.T) {
	for name, tc := range map[string]struct {
		failed *failure.Error
		later  time.Duration
		want   string
	}{
		"soon":                       {failure.Changed(), failure.MaxRetry, failure.ArtifactChanged},
		"after a month":              {failure.Changed(), 30 * 24 * time.Hour, failure.ArtifactPending},
		"when the host asked for it": {after(time.Hour, failure.Changed()), time.Hour, failure.ArtifactChanged},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Now())
			flights := New(clock)
			to := Route{Name: "x", Host: "h"}
			fails := func(context.Context) (int, error) { return 0, tc.failed }
			if _, err := Board(t.Context(), flights, to, fails); reason(t, err) != failure.ArtifactChanged {
				t.Fatal(err)
			}
			clock.Step(tc.later)
			let := make(chan struct{})
			defer close(let)
			told := make(chan error)
			go func() {
				_, err := Board(t.Context(), flights, to, func(context.Context) (int, error) { <-let; return 1, nil })
				told <- err
			}()
			for !clock.HasWaiters() {
				runtime.Gosched()
			}
			clock.Step(Patience)
			if err := <-told; reason(t, err) != tc.want {
				t.Errorf("while it is asked again: %v, want %s", err, tc.want)
			}
		})
	}
}

func after(retry time.Duration, failed *failure.Error) *failure.Error {
	failed.RetryAfter = retry
	return failed
}

// Who comes with other credentials while a request is under way isn't told that those
// before don't do: neither when it has failed, nor while it goes on.
func TestOtherCredentialsAreTried(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	flights := New(clock)
	begun, let := make(chan string, 5), make(chan struct{})
	fly := func(ctx context.Context, credentials string) error {
		_, err := Board(ctx, flights, Route{Name: "x", Host: "h", Credentials: credentials}, func(context.Context) (int, error) {
			begun <- credentials
			if credentials == "new" {
				return 1, nil
			}
			<-let
			return 0, failure.New(failure.SourceUnauthorized, "old credentials don't do")
		})
		return err
	}
	told := make(chan error)
	try := func(credentials string) {
		go func() { told <- fly(t.Context(), credentials) }()
		for !clock.HasWaiters() {
			runtime.Gosched()
		}
	}
	go func() { let <- struct{}{} }()
	if err := fly(t.Context(), "old"); reason(t, err) != failure.SourceUnauthorized {
		t.Fatal(err)
	}
	<-begun
	clock.Step(Patience) // nobody waits any more
	leaves, leave := context.WithCancel(t.Context())
	leave()
	_ = fly(leaves, "old") // it goes on without him
	<-begun
	clock.Step(leastPatience)

	try("new")
	clock.Step(Patience)
	if err := <-told; reason(t, err) != failure.ArtifactPending {
		t.Errorf("while the old ones are tried: %v", err)
	}
	try("new")
	close(let)
	if err := <-told; err != nil {
		t.Errorf("with new credentials: %v", err)
	} else if who := <-begun; who != "new" || len(begun) != 0 {
		t.Errorf("%s asked, and %d more", who, len(begun))
	}
}

func reason(t *testing.T, err error) string {
	t.Helper()
	known, ok := errors.AsType[*failure.Error](err)
	if !ok {
		t.Fatalf("got %v, want an *Error", err)
	}
	return known.Reason
}
