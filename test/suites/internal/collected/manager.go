// SPDX-License-Identifier: Apache-2.0

// Package collected has a manager for sources that are registered before there is one.
package collected

import (
	"context"
	"errors"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Manager keeps what is added to it, and runs it once it was started. It can do nothing else.
type Manager struct {
	manager.Manager

	mu      sync.Mutex
	waiting []manager.Runnable
	running context.Context //nolint:containedctx // that of Run; nil before
	group   sync.WaitGroup
	failed  error
}

// Add implements manager.Manager.
func (m *Manager) Add(r manager.Runnable) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waiting = append(m.waiting, r); m.running != nil {
		m.start()
	}
	return nil
}

// Run runs all until the context ends, and returns when all have ended.
func (m *Manager) Run(ctx context.Context) error {
	m.mu.Lock()
	m.running = ctx
	m.start()
	m.mu.Unlock()
	<-ctx.Done()
	m.group.Wait()
	return m.failed
}

// start starts what waits. The caller holds the lock.
func (m *Manager) start() {
	for _, r := range m.waiting {
		m.group.Go(func() {
			if err := r.Start(m.running); err != nil {
				m.mu.Lock()
				defer m.mu.Unlock()
				m.failed = errors.Join(m.failed, err)
			}
		})
	}
	m.waiting = nil
}
