// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// comeBackAnyway is when who is to be woken comes back at the latest.
const comeBackAnyway = time.Minute

// Waiter is an object that waits for sources. Those of other kinds may have its name.
type Waiter struct {
	Kind string
	Key  types.NamespacedName
}

// WithWaker has wake called when something has come that a call with the context waited
// for in vain, or when it is known that it doesn't. Of equal waiters, one is woken.
func WithWaker(ctx context.Context, who Waiter, wake func()) context.Context {
	return context.WithValue(ctx, wakerKey{}, &waker{who, wake})
}

type wakerKey struct{}

type waker struct {
	who  Waiter
	wake func()
}

// Waiting are those who have to be woken. They are not safe for concurrent use.
type Waiting map[Waiter]func()

// Add whoever the context's waker is for, if it has one.
func (w Waiting) Add(ctx context.Context) {
	if by := wakerOf(ctx); by != nil {
		w[by.who] = by.wake
	}
}

// Wake them all.
func (w Waiting) Wake() {
	for _, wake := range w {
		wake()
	}
}

// wakerOf is nil if nobody is to be woken.
func wakerOf(ctx context.Context) *waker {
	by, _ := ctx.Value(wakerKey{}).(*waker)
	return by
}

// ComeBack is when to ask again for what is under way.
func ComeBack(ctx context.Context) time.Duration {
	if wakerOf(ctx) != nil {
		return comeBackAnyway
	}
	return time.Second
}
