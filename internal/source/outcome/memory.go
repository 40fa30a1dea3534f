// SPDX-License-Identifier: Apache-2.0

// Package outcome asks each question once for all callers, and remembers the answers.
//
// A source on another host may be slow, down, or give what can't be used. A [Memory] shares
// one request among all who ask the same, tells failures again until it is time for the
// next try, and says when to ask again for what was rejected. A reconcile waits a moment
// for an answer; after that the request goes on, and its end wakes the object ([WithWaiter]).
package outcome

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/lru"
)

// timeout ends a request that nobody may be waiting for any more.
const timeout = time.Minute

// Memory remembers the answers to questions of one kind.
type Memory[T comparable] struct {
	clock clock.Clock
	hosts *Hosts
	calls singleflight.Group

	mu    sync.Mutex
	known *lru.Cache[string, entry[T]]
}

// entry is what is known of a question.
type entry[T comparable] struct {
	answer T
	asked  time.Time // zero: there is no answer

	failed   *failure.Error    // of the last request; nil if it had an answer
	until    time.Time         // a failure, or a rejected answer, is good until then
	failures int               // and rejections, in a row
	rejected T                 // the answer that can't be used; zero if there is none
	told     map[string]func() // wakes those who were told that it is rejected
}

// New returns a memory that keeps answers up to a total cost.
func New[T comparable](clock clock.Clock, hosts *Hosts, capacity int64, cost func(T) int64) *Memory[T] {
	return &Memory[T]{clock: clock, hosts: hosts, known: lru.New[string](capacity, func(e entry[T]) int64 { return cost(e.answer) })}
}

// Question is what is asked. Callers with the same key share the answer.
type Question struct {
	// Key has all that decides the answer, with the identity of the credentials.
	Key string
	// Host that is asked; "" if it is none but this one.
	Host string
	// NotBefore is how old an answer may be. Zero: as old as it likes.
	NotBefore time.Time
}

// Ask returns the answer that is known, or has call ask for it, with a context that outlives
// the caller's. Errors are of type [*failure.Error], but for that of ctx. One with reason
// [failure.ArtifactPending], or with Again set, says that the request goes on.
func (m *Memory[T]) Ask(ctx context.Context, q Question, call func(context.Context) (T, error)) (T, error) {
	e := m.recall(q.Key)
	for !e.isGood(q, m.clock.Now()) {
		begun, silent := m.clock.Now(), m.hosts.silent(q.Host)
		ended := m.calls.DoChan(q.Key, func() (any, error) {
			if e := m.recall(q.Key); e.isGood(q, m.clock.Now()) { // by a request that ended just before
				return e, nil
			}
			return m.request(ctx, q, call), nil
		})
		var err error
		if e, err = m.await(ctx, q, ended, silent); err != nil {
			var none T
			return none, err
		}
		if q.NotBefore.After(begun) { // a clock that was set back mustn't make this endless
			q.NotBefore = begun
		}
	}
	if e.failed != nil && !e.answers(q) {
		var none T
		return none, repeated(e.failed, e.until.Sub(m.clock.Now()))
	}
	return e.answer, nil
}

// request asks, and remembers what came of it.
func (m *Memory[T]) request(ctx context.Context, q Question, call func(context.Context) (T, error)) entry[T] {
	ctx, cancel := context.WithTimeout(withoutWaiter(context.WithoutCancel(ctx)), timeout)
	defer cancel()
	leave, err := m.hosts.enter(ctx, q.Host)
	defer leave()
	asked := m.clock.Now()
	var answer T
	if err == nil {
		err = guarded(func() (err error) {
			answer, err = call(ctx)
			return err
		})
	}
	m.mu.Lock()
	known, _ := m.known.Get(q.Key)
	now := known.after(answer, asked, err, m.clock.Now())
	m.known.Put(q.Key, now)
	m.mu.Unlock()
	if now.answer != known.answer { // whoever was told of the former may go on
		wakeAll(known.told)
	}
	return now
}

// after returns the entry with what came of a request.
func (e entry[T]) after(answer T, asked time.Time, err error, now time.Time) entry[T] {
	var none T
	if err != nil {
		e.failed = asFailure(err)
		e.until = now.Add(max(failure.Backoff(e.failed.Reason, e.failures), e.failed.RetryAfter))
		e.failures++
		return e
	}
	e.answer, e.asked, e.failed = answer, asked, nil
	switch e.rejected {
	case none:
		e.failures = 0
	case answer: // it is still that which can't be used
		e.until = now.Add(failure.Backoff(failure.ArtifactRefused, e.failures))
		e.failures++
	default:
		e.told = nil
	}
	return e
}

func (m *Memory[T]) recall(key string) entry[T] {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, _ := m.known.Get(key)
	return e
}

// answers reports whether the entry has an answer that is no older than is asked for.
func (e entry[T]) answers(q Question) bool { return !e.asked.IsZero() && !e.asked.Before(q.NotBefore) }

// isGood reports whether the entry answers the question without a request. A rejected
// answer is good until it is time to ask whether there is another one, and while that fails.
func (e entry[T]) isGood(q Question, now time.Time) bool {
	var none T
	switch answers := e.answers(q); {
	case answers && (e.rejected == none || e.rejected != e.answer):
		return true
	case answers, e.failed != nil:
		return now.Before(e.until)
	}
	return false
}

// repeated is a failure that is told again until it is time for the next try.
func repeated(failed *failure.Error, left time.Duration) *failure.Error {
	again := *failed
	again.Wait = failed.Wait || failed.Reason == failure.SourceUnavailable
	again.RetryAfter = max(left, time.Millisecond)
	return &again
}

// asFailure returns the error as one of a source; what has no reason is the API server's.
func asFailure(err error) *failure.Error {
	if failed, ok := errors.AsType[*failure.Error](err); ok {
		return failed
	}
	return &failure.Error{Reason: failure.SourceUnavailable, Err: err}
}

// guarded makes an error of a panic: one artifact that a parser fails on mustn't end the
// process for all others.
func guarded(call func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = failure.New(failure.ArtifactInvalid, "it can't be read: a parser failed on it; make it anew")
		}
	}()
	return call()
}
