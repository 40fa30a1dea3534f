// SPDX-License-Identifier: Apache-2.0

// Package gate holds back what is added to a manager until it is let through.
package gate

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Gate is a manager that keeps what is added to it until Run. Meanwhile a controller lists and
// watches nothing, and the manager itself runs. The gate doesn't ask whether a runnable needs
// leader election, so Run is to be called on the leader.
type Gate struct {
	manager.Manager

	mu      sync.Mutex
	waiting []manager.Runnable
	start   func(manager.Runnable) // nil before Run
	ended   bool
}

// New returns a closed gate before a manager.
func New(mgr manager.Manager) *Gate { return &Gate{Manager: mgr} }

// Add implements manager.Manager. A runnable that is added to an open gate starts at once.
func (g *Gate) Add(r manager.Runnable) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.ended:
		return errors.New("the controllers have ended")
	case g.start == nil:
		g.waiting = append(g.waiting, r)
	default:
		g.start(r)
	}
	return nil
}

// Run starts what was added. It returns when all of it has ended: after the context, or after the
// first that failed, whose error it returns. It may be called once.
func (g *Gate) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	g.mu.Lock()
	if g.start != nil {
		g.mu.Unlock()
		return errors.New("the controllers were started twice")
	}
	g.start = func(r manager.Runnable) { group.Go(func() error { return r.Start(ctx) }) }
	for _, r := range g.waiting {
		g.start(r)
	}
	g.waiting = nil
	g.mu.Unlock()

	<-ctx.Done()
	g.mu.Lock() // what is being added is counted
	g.ended = true
	g.mu.Unlock()
	return group.Wait()
}
