// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"context"
	"time"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
)

// Peek returns the last answer, however old it is.
func (m *Memory[T]) Peek(key string) (answer T, known bool) {
	e := m.recall(key)
	return e.answer, !e.asked.IsZero()
}

// Forget has the question asked anew.
func (m *Memory[T]) Forget(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known.Remove(key)
}

// Reject notes that nobody can use the answer: whoever is told to mend it publishes
// something else at the same place. The question is asked again after times that grow; the
// waiter of ctx is woken when there is another answer. Reject returns how long it takes
// until the question is asked again; 0 if it is time to, or the answer isn't the last one.
func (m *Memory[T]) Reject(ctx context.Context, key string, answer T) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, found := m.known.Get(key)
	if !found || e.asked.IsZero() || e.answer != answer {
		return 0
	}
	now := m.clock.Now()
	if e.rejected != answer {
		e.rejected, e.told = answer, map[string]func(){}
		e.until = now.Add(failure.Backoff(failure.ArtifactRefused, e.failures))
		e.failures++
		m.known.Put(key, e)
	}
	if w := waiterOf(ctx); w != nil {
		e.told[w.name] = w.wake
	}
	return max(e.until.Sub(now), 0)
}

// IsRejected reports whether the answer was the last one that was rejected.
func (m *Memory[T]) IsRejected(key string, answer T) bool {
	e := m.recall(key)
	return !e.asked.IsZero() && e.rejected == answer
}

// Accept notes that the answer can be used after all.
func (m *Memory[T]) Accept(key string, answer T) {
	var none T
	m.mu.Lock()
	e, found := m.known.Get(key)
	if !found || e.answer != answer || e.failures == 0 {
		m.mu.Unlock()
		return
	}
	told := e.told
	e.rejected, e.failures, e.told = none, 0, nil
	m.known.Put(key, e)
	m.mu.Unlock()
	wakeAll(told)
}

// Reconsider has the question asked at once whose answer was rejected, and wakes all who
// were told of that.
func (m *Memory[T]) Reconsider(key string) {
	var none T
	m.mu.Lock()
	e, found := m.known.Get(key)
	if !found || e.rejected == none {
		m.mu.Unlock()
		return
	}
	told := e.told
	e.until, e.failures, e.told = time.Time{}, 0, map[string]func(){}
	m.known.Put(key, e)
	m.mu.Unlock()
	wakeAll(told)
}

func wakeAll(told map[string]func()) {
	for _, wake := range told {
		wake()
	}
}
