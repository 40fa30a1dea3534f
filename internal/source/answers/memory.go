// SPDX-License-Identifier: Apache-2.0

// Package answers asks each question once for all callers, and remembers the answers.
//
// A source on another host may be slow, or down. A [Memory] shares one request among all who
// ask the same, and tells failures again until it is time for the next try. A reconcile waits
// a moment for an answer; after that the request continues, and its end wakes the object
// ([WithWaiter]).
package answers

import (
	"context"
	"maps"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// timeout ends a request that nobody may be waiting for any more.
const timeout = time.Minute

// Memory remembers the answers to questions of one kind.
//
// Key: the question.
// Bound: the size that New is given, and the budget.
// Lost with it: each question is asked once more.
type Memory[T any] struct {
	clock clock.Clock
	calls singleflight.Group
	known *budget.Cache[string, entry[T]]
}

// entry is what is known of a question.
type entry[T any] struct {
	answer T
	asked  time.Time // zero: there is no answer
	begun  time.Time // of the request that is under way; zero if none is

	failed   *failure.Error    // of the last request; nil if it had an answer
	refused  bool              // a caller can't use the answer
	told     map[string]func() // wakes those who refused it
	until    time.Time         // when a failed question, or one with a refused answer, is asked again
	failures int               // in a row, and refused answers
}

// postpone counts a failure, and puts the next request off. After a long time without one, the count
// starts again.
func (e *entry[T]) postpone(now time.Time, reason string, least time.Duration) {
	if now.Sub(e.until) > 2*retry.Refused.Longest {
		e.failures = 0
	}
	e.until = now.Add(max(failure.Backoff(reason, e.failures), least))
	e.failures++
}

// New returns a memory that keeps answers up to a total cost in bytes, as part of a budget. An answer belongs to the namespace in
// the context of who asked first.
func New[T any](clock clock.Clock, of *budget.Budget, capacity int64, cost func(T) int64) *Memory[T] {
	return &Memory[T]{clock: clock, known: budget.NewCache[string](of, capacity, func(e entry[T]) int64 { return cost(e.answer) })}
}

// Strings returns the cost of an answer of texts: the bytes that they take.
func Strings(texts []string) int64 {
	size := int64(64)
	for _, text := range texts {
		size += int64(len(text)) + 16
	}
	return size
}

// tenantOf returns whose an answer is.
func tenantOf(ctx context.Context) budget.Tenant {
	return budget.Tenant{Namespace: budget.TenantOf(ctx).Namespace}
}

// Question is what is asked. Callers with the same key share the answer.
type Question struct {
	// Key has all that decides the answer, with the identity of the credentials.
	Key string
	// NotBefore is how old an answer may be. Zero: as old as it likes.
	NotBefore time.Time
}

// Ask returns the answer that is known, or has call ask for it, with a context that outlives
// the caller's. Errors are of type [*failure.Error], but for the error of ctx. An error with reason
// [failure.ArtifactPending], or with Again set, says that the request continues.
func (m *Memory[T]) Ask(ctx context.Context, q Question, call func(context.Context) (T, error)) (answer T, err error) {
	e, _ := m.known.Get(q.Key)
	for !e.isGood(q, m.clock.Now()) {
		begun := m.clock.Now()
		ended := m.calls.DoChan(q.Key, func() (any, error) {
			if e, _ := m.known.Get(q.Key); e.isGood(q, m.clock.Now()) { // by a request that ended just before
				return e, nil
			}
			return m.request(ctx, q.Key, call), nil
		})
		if e, err = m.await(ctx, q.Key, ended); err != nil {
			return answer, err
		}
		if q.NotBefore.After(begun) { // a clock that was set back mustn't make this endless
			q.NotBefore = begun
		}
	}
	if !e.answers(q) {
		return answer, repeated(e.failed, e.until.Sub(m.clock.Now()))
	}
	return e.answer, nil
}

// Peek returns the last answer, however old it is.
func (m *Memory[T]) Peek(key string) (answer T, known bool) {
	e, _ := m.known.Get(key)
	return e.answer, !e.asked.IsZero()
}

// Forget has the question asked again.
func (m *Memory[T]) Forget(key string) { m.known.Remove(key) }

// Refuse notes that the caller can't use the answer, and returns how long it is given nevertheless. Then the
// question is [Memory.Due]. Refuse requeues the caller when the source answers.
func (m *Memory[T]) Refuse(ctx context.Context, key string) time.Duration {
	now := m.clock.Now()
	e := m.known.Change(tenantOf(ctx), key, func(e *entry[T]) {
		if !e.refused {
			e.refused = true
			e.postpone(now, failure.ArtifactRefused, 0)
		}
		if w, _ := ctx.Value(waiterKey{}).(*waiter); w != nil {
			told := map[string]func(){w.name: w.wake}
			maps.Copy(told, e.told) // others read the previous ones
			e.told = told
		}
	})
	return e.until.Sub(now)
}

// Due returns the time from which on an answer that was refused is too old, zero if that time is still to come.
func (m *Memory[T]) Due(key string) time.Time {
	if e, _ := m.known.Get(key); e.refused && !m.clock.Now().Before(e.until) {
		return e.until
	}
	return time.Time{}
}

// Reconsider forgets an answer that was refused, and wakes those who refused it.
func (m *Memory[T]) Reconsider(key string) {
	if e, _ := m.known.Get(key); e.refused {
		m.Forget(key)
		e.wakeAll()
	}
}

func (e entry[T]) wakeAll() {
	for _, wake := range e.told {
		wake()
	}
}

// request asks, and remembers what came of it.
func (m *Memory[T]) request(ctx context.Context, key string, call func(context.Context) (T, error)) entry[T] {
	ctx, cancel := context.WithTimeout(withoutWaiter(context.WithoutCancel(ctx)), timeout)
	defer cancel()
	ctx, release := budget.Holding(ctx) // until it is known what came of the answers of hosts
	defer release()
	begun := m.clock.Now()
	m.known.Change(tenantOf(ctx), key, func(e *entry[T]) { e.begun = begun })
	answer, err := guarded(ctx, call)
	release() // else it would find no room beside what it was made of
	var before entry[T]
	e := m.known.Change(tenantOf(ctx), key, func(e *entry[T]) {
		before, e.begun = *e, time.Time{}
		if err != nil {
			e.failed = failure.Of(err)
			e.postpone(m.clock.Now(), e.failed.Reason, e.failed.RetryAfter)
			return
		}
		*e = entry[T]{answer: answer, asked: begun}
		if before.refused { // the next one may be refused, too
			e.until, e.failures = before.until, before.failures
		}
	})
	if err == nil {
		before.wakeAll()
	}
	return e
}

// answers reports whether the entry has an answer that is no older than is asked for.
func (e entry[T]) answers(q Question) bool { return !e.asked.IsZero() && !e.asked.Before(q.NotBefore) }

// isGood reports whether the entry answers the question without a request.
func (e entry[T]) isGood(q Question, now time.Time) bool {
	return e.answers(q) || e.failed != nil && now.Before(e.until)
}

// repeated returns a failure that is told again until it is time for the next try.
func repeated(failed *failure.Error, left time.Duration) *failure.Error {
	again := *failed
	again.Wait = failed.Wait || failed.Reason == failure.SourceUnavailable
	again.RetryAfter = max(left, time.Millisecond)
	return &again
}

// guarded makes an error of a panic: one artifact that a parser fails on mustn't end the
// process for all others.
func guarded[T any](ctx context.Context, call func(context.Context) (T, error)) (answer T, err error) {
	defer func() {
		if recover() != nil {
			err = failure.New(failure.ArtifactInvalid, "it can't be read: a parser failed on it; make it again")
		}
	}()
	return call(ctx)
}

const (
	// Patience is how long one reconcile waits for sources, all together.
	Patience = time.Second
	// leastPatience is how long it waits for each further one, and for one that others
	// waited for already: the answer may be at hand.
	leastPatience = 50 * time.Millisecond
)

type waiterKey struct{}

// waiter is an object that can't wait long.
type waiter struct {
	name  string
	begun time.Time
	wake  func()
}

// WithWaiter returns a context for the calls of one reconcile of the object with that name.
// Together they wait a moment for sources; wake is called at the end of each request that
// wasn't waited for.
func WithWaiter(ctx context.Context, name string, now time.Time, wake func()) context.Context {
	return context.WithValue(ctx, waiterKey{}, &waiter{name, now, wake})
}

// withoutWaiter is for requests, which wait for what they need in turn.
func withoutWaiter(ctx context.Context) context.Context {
	return context.WithValue(ctx, waiterKey{}, (*waiter)(nil))
}

// await waits for the end of a request as long as the caller may.
func (m *Memory[T]) await(ctx context.Context, key string, ended <-chan singleflight.Result) (entry[T], error) {
	w, _ := ctx.Value(waiterKey{}).(*waiter)
	var over <-chan time.Time // never, for a caller that isn't woken
	if w != nil {
		left := Patience - m.clock.Since(w.begun)
		if e, _ := m.known.Get(key); !e.begun.IsZero() && m.clock.Since(e.begun) >= Patience {
			left = leastPatience // others waited already
		}
		over = m.clock.After(max(left, leastPatience))
	}
	select {
	case result := <-ended:
		return result.Val.(entry[T]), nil
	case <-ctx.Done():
	case <-over:
	}
	if w != nil {
		go func() {
			<-ended
			w.wake()
		}()
	}
	if err := ctx.Err(); err != nil {
		return entry[T]{}, err
	}
	return entry[T]{}, m.pending(key)
}

// pending returns the error while a request continues: why the last one failed, if it did.
func (m *Memory[T]) pending(key string) *failure.Error {
	if e, _ := m.known.Get(key); e.failed != nil {
		again := repeated(e.failed, retry.Answer)
		again.Again = true
		return again
	}
	slow := failure.New(failure.ArtifactPending, "the source is slow; what it has is still being read")
	slow.Wait, slow.RetryAfter = true, retry.Answer
	return slow
}
