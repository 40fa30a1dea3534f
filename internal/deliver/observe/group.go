// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// Group runs functions beside each other, as [errgroup.Group] does. A panic of one of them comes up in Wait, where it is contained.
type Group struct {
	*errgroup.Group
	panicked atomic.Pointer[Panic]
}

// NewGroup returns a group, and a context that ends with the first error of it, or with Wait.
func NewGroup(ctx context.Context) (*Group, context.Context) {
	group, ctx := errgroup.WithContext(ctx)
	return &Group{Group: group}, ctx
}

// Go runs a function.
func (g *Group) Go(f func() error) {
	g.Group.Go(func() error {
		defer func() { g.panicked.CompareAndSwap(nil, PanicOf(recover())) }()
		return f()
	})
}

// Wait waits for all functions, and returns the first error.
func (g *Group) Wait() error {
	err := g.Group.Wait()
	if there := g.panicked.Load(); there != nil {
		panic(there)
	}
	return err
}
