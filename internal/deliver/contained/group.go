// SPDX-License-Identifier: Apache-2.0

// Package contained brings panics of goroutines to where they are handled, as a cluster's answer may lead to one.
package contained

import (
	"context"
	"runtime/debug"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// Panic is one that a goroutine recovered from, to be told where it can be handled.
type Panic struct {
	Value any
	Stack []byte
}

// PanicOf returns what was recovered, with the stack of the caller; nil for nothing.
func PanicOf(recovered any) *Panic {
	if recovered == nil {
		return nil
	}
	return &Panic{Value: recovered, Stack: debug.Stack()}
}

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
