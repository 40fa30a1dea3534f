// SPDX-License-Identifier: Apache-2.0

package answers_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source/answers"
	"github.com/cluster-chandler/chandler/test/must"
)

// waits asks as a reconcile, lets so much time pass while it waits, and returns what it is told.
func (w *world) waits(ctx context.Context, asked answers.Question, step time.Duration) *failure.Error {
	told := make(chan error, 1)
	go func() {
		_, err := w.ask(ctx, asked)
		told <- err
	}()
	for {
		select {
		case err := <-told:
			failed, _ := errors.AsType[*failure.Error](err)
			return failed
		default:
			if w.clock.HasWaiters() {
				w.clock.Step(step)
			}
			runtime.Gosched()
		}
	}
}

// A reconcile waits for a moment, all of its questions together, and comes back when it is woken.
func TestReconcilesWaitForAMoment(t *testing.T) {
	w := newWorld()
	w.let = make(chan struct{})
	woken := make(chan string, 10)
	ctx := answers.WithWaiter(t.Context(), "me", w.clock.Now(), func() { woken <- "me" })
	begun := w.clock.Now()
	for _, key := range []string{"a", "b", "c"} {
		failed := w.waits(ctx, answers.Question{Key: key}, 10*time.Millisecond)
		if failed == nil || failed.Reason != failure.ArtifactPending || !failed.Wait || failed.RetryAfter < 30*time.Second {
			t.Errorf("%s: got %+v", key, failed)
		}
	}
	if waited := w.clock.Since(begun); waited < answers.Patience || waited > answers.Patience*3/2 {
		t.Errorf("it waited for %s", waited)
	}
	if len(woken) > 0 {
		t.Error("it is woken before there is an answer")
	}
	close(w.let)
	for range 3 {
		<-woken
	}
	w.expect(t, answers.Question{Key: "a"}, "one", "", 3)
}

// A reconcile hardly waits for what others have waited for already.
func TestSlowAnswersAreHardlyWaitedForAgain(t *testing.T) {
	w := newWorld()
	w.let = make(chan struct{})
	defer close(w.let)
	first := answers.WithWaiter(t.Context(), "first", w.clock.Now(), func() {})
	_ = w.waits(first, q, 10*time.Millisecond)
	for w.asked.Load() == 0 { // on a busy machine the request may begin after the wait for it
		runtime.Gosched()
	}
	w.clock.Step(answers.Patience)
	begun := w.clock.Now()
	second := answers.WithWaiter(t.Context(), "second", begun, func() {})
	_ = w.waits(second, q, 10*time.Millisecond)
	if waited := w.clock.Since(begun); waited > answers.Patience/2 {
		t.Errorf("it waited for %s", waited)
	}
}

// Who isn't woken waits as long as his context lasts.
func TestOthersWait(t *testing.T) {
	w := newWorld()
	w.let = make(chan struct{})
	answered := make(chan string)
	go func() {
		got, _ := w.ask(t.Context(), q)
		answered <- got
	}()
	for w.asked.Load() == 0 {
		runtime.Gosched()
	}
	w.clock.Step(time.Hour)
	close(w.let)
	must.Equal(t, "one", <-answered)
}
