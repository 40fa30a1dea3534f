// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// errGaveWay ends a request whose worker a namespace without one gets. The request waits again.
var errGaveWay = errors.New("another namespace had no worker")

// turns are the requests that have workers. A namespace that has several gives one up for a namespace that has none: the last
// that it got, so that the first comes to its end.
//
// Key: the namespace.
// Bound: the workers.
// Lost with it: nothing, as the requests end with the process.
type turns struct {
	mu       sync.Mutex
	taken    map[string][]*turn // in the order in which they began
	waiting  map[string]int     // how many requests wait
	promised map[string]bool    // those that get the worker of another one
}

type turn struct{ giveWay context.CancelCauseFunc }

func newTurns() *turns {
	return &turns{taken: map[string][]*turn{}, waiting: map[string]int{}, promised: map[string]bool{}}
}

// wait says that a request of a namespace waits for a worker.
func (t *turns) wait(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting[namespace]++
	t.share()
}

// leave says that a request waits no more.
func (t *turns) leave(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.promised, namespace)
	if t.waiting[namespace]--; t.waiting[namespace] == 0 {
		delete(t.waiting, namespace)
	}
}

// begin says that a request has a worker. It returns a context that ends, by errGaveWay, once another namespace gets it.
func (t *turns) begin(ctx context.Context, namespace string) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	began := &turn{giveWay: cancel}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken[namespace] = append(t.taken[namespace], began)
	t.share()
	return ctx, func() {
		cancel(nil)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.remove(namespace, began)
	}
}

// share has namespaces that have several workers give one to each namespace that waits, and has none.
func (t *turns) share() {
	for namespace := range t.waiting {
		most := t.most()
		if taken := t.taken[most]; len(taken) > 1 && len(t.taken[namespace]) == 0 && !t.promised[namespace] {
			last := taken[len(taken)-1]
			t.remove(most, last)
			last.giveWay(errGaveWay)
			t.promised[namespace] = true
		}
	}
}

// most returns the namespace that has most workers.
func (t *turns) most() (namespace string) {
	for of, taken := range t.taken {
		if len(taken) > len(t.taken[namespace]) {
			namespace = of
		}
	}
	return namespace
}

func (t *turns) remove(namespace string, ended *turn) {
	t.taken[namespace] = slices.DeleteFunc(t.taken[namespace], func(other *turn) bool { return other == ended })
	if len(t.taken[namespace]) == 0 {
		delete(t.taken, namespace)
	}
}
