// SPDX-License-Identifier: Apache-2.0

package outcome_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/outcome"
)

// An answer that was rejected is asked for again after times that grow, until there is
// another one.
func TestRejectedAnswersAreAskedForAgain(t *testing.T) {
	w := newWorld()
	w.expect(t, q, "one", "", 1)
	if left := w.Reject(t.Context(), q.Key, "another"); left != 0 {
		t.Errorf("what isn't the answer is asked for after %s", left)
	}
	for tries := range int32(12) {
		left := w.Reject(t.Context(), q.Key, "one")
		usual := min(failure.FirstRetry<<tries, failure.MaxRetry)
		if left < usual || left > usual*5/4 {
			t.Errorf("try %d: again after %s, want about %s", tries, left, usual)
		}
		if again := w.Reject(t.Context(), q.Key, "one"); again != left {
			t.Errorf("rejected once more, it is asked again after %s, not %s", again, left)
		}
		w.expect(t, q, "one", "", tries+1)
		w.clock.Step(left)
		w.expect(t, q, "one", "", tries+2)
	}
	if !w.IsRejected(q.Key, "one") || w.IsRejected(q.Key, "two") {
		t.Error("it doesn't know what was rejected")
	}
	w.says("two", nil)
	w.clock.Step(2 * failure.MaxRetry)
	w.expect(t, q, "two", "", 14)
	w.clock.Step(24 * time.Hour)
	w.expect(t, q, "two", "", 14)
}

// While the source is down, the rejected answer is known, and the source is asked seldom.
func TestRejectedAnswersOfASourceThatIsDown(t *testing.T) {
	w := newWorld()
	w.expect(t, q, "one", "", 1)
	w.clock.Step(w.Reject(t.Context(), q.Key, "one"))
	w.says("", failure.New(failure.SourceUnavailable, "down"))
	w.expect(t, q, "one", "", 2)
	w.expect(t, q, "one", "", 2)
	if left := w.Reject(t.Context(), q.Key, "one"); left <= 0 {
		t.Errorf("it is asked again after %s", left)
	}
}

func TestWhoWasToldIsWoken(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"another answer": func(w *world) {
			w.says("two", nil)
			w.clock.Step(2 * failure.MaxRetry)
			w.expect(t, q, "two", "", 2)
		},
		"it is accepted after all": func(w *world) { w.Accept(q.Key, "one") },
		"somebody mended it":       func(w *world) { w.Reconsider(q.Key) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.expect(t, q, "one", "", 1)
			woken := map[string]int{}
			for _, who := range []string{"a", "b", "a"} {
				w.Reject(outcome.WithWaiter(t.Context(), who, w.clock.Now(), func() { woken[who]++ }), q.Key, "one")
			}
			w.Reconsider("another question")
			w.Accept(q.Key, "another")
			if len(woken) > 0 {
				t.Error("somebody was woken for nothing")
			}
			change(w)
			if woken["a"] != 1 || woken["b"] != 1 {
				t.Errorf("woken: %v", woken)
			}
			w.Reconsider(q.Key)
			if woken["a"] != 1 {
				t.Error("woken twice")
			}
		})
	}
}

func TestReconsideredAnswersAreAskedForAtOnce(t *testing.T) {
	w := newWorld()
	w.expect(t, q, "one", "", 1)
	w.Reject(t.Context(), q.Key, "one")
	w.Reconsider(q.Key)
	w.expect(t, q, "one", "", 2)
	w.expect(t, q, "one", "", 2)
	w.Accept(q.Key, "one")
	if w.IsRejected(q.Key, "one") {
		t.Error("it is rejected still")
	}
}

// TestAllAtOnce is for the race detector.
func TestAllAtOnce(t *testing.T) {
	w := newWorld()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for round := range 200 {
				asked := outcome.Question{Key: fmt.Sprint(round % 3), Host: fmt.Sprint(i % 2), NotBefore: w.clock.Now()}
				ctx := outcome.WithWaiter(t.Context(), fmt.Sprint(i), w.clock.Now(), func() { w.Peek(asked.Key) })
				answer, err := w.ask(ctx, asked)
				if failed, ok := errors.AsType[*failure.Error](err); err != nil && (!ok || failed.Reason != failure.ArtifactPending && failed.Reason != failure.SourceUnavailable) {
					t.Errorf("got %v", err)
				}
				switch round % 7 {
				case 0:
					w.Reject(ctx, asked.Key, answer)
				case 1:
					w.Accept(asked.Key, answer)
				case 2:
					w.Reconsider(asked.Key)
				case 3:
					w.Forget(asked.Key)
				case 4:
					w.says(fmt.Sprint("answer ", round), nil)
				case 5:
					w.says("", failure.New(failure.SourceUnavailable, "down"))
				default:
					w.clock.Step(time.Second)
				}
				runtime.Gosched()
			}
		})
	}
	all.Wait()
}
