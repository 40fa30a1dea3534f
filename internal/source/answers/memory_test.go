// SPDX-License-Identifier: Apache-2.0

package answers_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/source/answers"
	"github.com/cluster-chandler/chandler/test/must"
)

// world is a memory, and what the host that it asks says.
type world struct {
	*answers.Memory[string]
	clock *clocktesting.FakeClock
	asked atomic.Int32

	mu     sync.Mutex
	answer string
	err    error
	let    chan struct{} // nil: it answers at once
}

func newWorld() *world {
	clock := clocktesting.NewFakeClock(time.Now())
	return &world{
		Memory: answers.New(clock, nil, 10_000, func(string) int64 { return 1 }),
		clock:  clock, answer: "one",
	}
}

func (w *world) says(answer string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer, w.err = answer, err
}

func (w *world) call(ctx context.Context) (string, error) {
	w.mu.Lock()
	let, answer, err := w.let, w.answer, w.err
	w.mu.Unlock()
	w.asked.Add(1)
	if let != nil {
		select {
		case <-let:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return answer, err
}

func (w *world) ask(ctx context.Context, q answers.Question) (string, error) {
	return w.Ask(ctx, q, w.call)
}

// expect asks, and expects an answer, or an error with that reason, and how often was asked in all.
func (w *world) expect(t *testing.T, q answers.Question, answer, reason string, asked int32) failure.Error {
	t.Helper()
	got, err := w.ask(t.Context(), q)
	failed, _ := errors.AsType[*failure.Error](err)
	if got != answer || (err == nil) != (reason == "") || failed != nil && failed.Reason != reason || w.asked.Load() != asked {
		t.Errorf("got %q, %v with %d requests in all; want %q, %s with %d", got, err, w.asked.Load(), answer, reason, asked)
	}
	if failed == nil {
		return failure.Error{}
	}
	return *failed
}

var q = answers.Question{Key: "what"}

func TestAnswersAreAsOldAsTheyMayBe(t *testing.T) {
	w := newWorld()
	w.expect(t, q, "one", "", 1)
	w.says("two", nil)
	w.clock.Step(24 * time.Hour)
	w.expect(t, q, "one", "", 1)
	fresh := q
	fresh.NotBefore = w.clock.Now()
	w.expect(t, fresh, "two", "", 2)
	w.expect(t, fresh, "two", "", 2)
	w.expect(t, q, "two", "", 2)
	w.expect(t, answers.Question{Key: "else"}, "two", "", 3)
	if answer, known := w.Peek("what"); answer != "two" || !known {
		t.Errorf("the last one is %q (%v)", answer, known)
	}
	w.Forget("what")
	if _, known := w.Peek("what"); known {
		t.Error("it isn't forgotten")
	}
	w.expect(t, q, "two", "", 4)
}

// A failure is told again until it is time for the next try, and an answer that is new
// enough is used meanwhile.
func TestFailuresAreRemembered(t *testing.T) {
	w := newWorld()
	w.says("", failure.New(failure.SourceUnavailable, "down"))
	for tries := range int32(6) {
		failed := w.expect(t, q, "", failure.SourceUnavailable, tries+1)
		usual := min(retry.Refused.First<<tries, retry.Unavailable.Longest)
		if !failed.Wait || failed.RetryAfter < usual || failed.RetryAfter > usual*5/4 {
			t.Errorf("try %d: again after %s, want about %s", tries, failed.RetryAfter, usual)
		}
		w.clock.Step(failed.RetryAfter - time.Millisecond)
		if again := w.expect(t, q, "", failure.SourceUnavailable, tries+1); again.RetryAfter > time.Millisecond {
			t.Errorf("try %d: again after %s, want the rest", tries, again.RetryAfter)
		}
		w.clock.Step(time.Millisecond)
	}
	w.says("one", nil)
	w.expect(t, q, "one", "", 7)
	answered := w.clock.Now()
	w.says("", errors.New("the API server's"))
	w.clock.Step(time.Minute)
	w.expect(t, answers.Question{Key: q.Key, NotBefore: w.clock.Now()}, "", failure.SourceUnavailable, 8)
	w.expect(t, answers.Question{Key: q.Key, NotBefore: answered}, "one", "", 8)
	w.expect(t, q, "one", "", 8)
}

func TestAPanicIsAnError(t *testing.T) {
	w := newWorld()
	_, err := w.Ask(t.Context(), q, func(context.Context) (string, error) { panic("sentinel") })
	if failed, ok := errors.AsType[*failure.Error](err); !ok || failed.Reason != failure.ArtifactInvalid {
		t.Errorf("got %v", err)
	}
}

// An answer finds room where what it was made of had all, which is given back whatever becomes of the request.
func TestAnswersFindRoom(t *testing.T) {
	for name, read := range map[string]func() string{"an answer": func() string { return "one" }, "a panic": func() string { panic("sentinel") }} {
		t.Run(name, func(t *testing.T) {
			of := budget.New(budget.Limits{All: 1000})
			memory := answers.New(clocktesting.NewFakeClock(time.Now()), of, 1000, func(string) int64 { return 500 })
			_, err := memory.Ask(t.Context(), q, func(ctx context.Context) (string, error) {
				claim := of.Claim(budget.Tenant{}, 1000)
				must.Equal(t, true, claim.Try(1000), "it is granted")
				claim.Release(ctx)
				return read(), nil
			})
			if usage := of.Usage(); usage.Claimed != 0 || usage.Cached < 500 {
				t.Errorf("after %v there is %+v", err, usage)
			}
		})
	}
}

// A caller that leaves leaves the request to others.
func TestRequestsOutliveTheirCallers(t *testing.T) {
	w := newWorld()
	w.let = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.ask(ctx, q); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(w.let)
	w.expect(t, q, "one", "", 1)
}

// TestAllAtOnce is for the race detector.
func TestAllAtOnce(t *testing.T) {
	w := newWorld()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for round := range 200 {
				asked := answers.Question{Key: fmt.Sprint(round % 3), NotBefore: w.clock.Now()}
				ctx := answers.WithWaiter(t.Context(), fmt.Sprint(i), w.clock.Now(), func() { w.Peek(asked.Key) })
				_, err := w.ask(ctx, asked)
				if failed, ok := errors.AsType[*failure.Error](err); err != nil && (!ok || failed.Reason != failure.ArtifactPending && failed.Reason != failure.SourceUnavailable) {
					t.Errorf("got %v", err)
				}
				switch round % 7 {
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

// An answer that nobody can use is given until it is due, and the question is asked less often with each one.
// After a long time without one the count starts again.
func TestRefusedAnswersAreAskedForAgain(t *testing.T) {
	w := newWorld()
	w.expect(t, q, "one", "", 1)
	if due := w.Due(q.Key); !due.IsZero() {
		t.Errorf("a good answer is due at %s", due)
	}
	refuse := func(tries int) time.Duration {
		t.Helper()
		left := w.Refuse(t.Context(), q.Key)
		if usual := retry.Refused.After(tries); left < usual || left > usual*5/4 {
			t.Errorf("after %d refusals: again in %s, want about %s", tries, left, usual)
		}
		must.Equal(t, left, w.Refuse(t.Context(), q.Key), "who refuses it a second time waits as long")
		return left
	}
	for tries := range 5 {
		left := refuse(tries)
		w.says(fmt.Sprint("after ", tries), nil)
		if w.clock.Step(left - time.Millisecond); !w.Due(q.Key).IsZero() {
			t.Errorf("after %d refusals it is due too early", tries)
		}
		w.clock.Step(time.Millisecond)
		asked := q
		asked.NotBefore = w.Due(q.Key)
		w.expect(t, asked, fmt.Sprint("after ", tries), "", int32(tries+2))
	}
	w.clock.Step(3 * retry.Refused.Longest)
	refuse(0)
	w.Reconsider(q.Key)
	w.expect(t, q, "after 4", "", 7)
	w.Reconsider(q.Key)
	w.expect(t, q, "after 4", "", 7)
}
