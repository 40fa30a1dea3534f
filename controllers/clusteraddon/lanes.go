// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// slowAfter is how long a reconcile may hold a worker before it counts as slow.
const slowAfter = 10 * time.Second

// errYield ends a reconcile that became slow while there was no room for one.
var errYield = errors.New("the reconcile takes long, and gives way to others")

// lanes keep slow clusters from holding all workers. At most half of the workers are for reconciles
// that take long, and for clusters whose last one did, or waited for memory in vain. A reconcile that becomes slow while there is
// no room gives up its worker: the records have what it did.
//
// Key: the ClusterAddon.
// Bound: those whose last reconcile was slow.
// Lost with it: a slow cluster may hold a worker once more.
type lanes struct {
	clock clock.WithDelayedExecution

	mu   sync.Mutex
	room int // for slow reconciles
	slow map[client.ObjectKey]bool
}

func newLanes(workers int) *lanes {
	return &lanes{clock: clock.RealClock{}, room: max(1, workers/2), slow: map[client.ObjectKey]bool{}}
}

// enter begins a reconcile. It is false if there is no room for it: it is to come again after retry.Room.
// The caller says at the end whether the cluster became unreachable, or waited for memory in vain.
func (l *lanes) enter(ctx context.Context, key client.ObjectKey) (_ context.Context, leave func(isSlow bool), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	holds := l.slow[key]
	if holds {
		if l.room == 0 {
			return nil, nil, false
		}
		l.room--
	}
	ctx, cancel := context.WithCancelCause(ctx)
	ended, late := false, false
	timer := l.clock.AfterFunc(slowAfter, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if late = true; ended || holds {
			return
		}
		l.slow[key] = true
		if l.room == 0 {
			cancel(errYield)
			return
		}
		l.room--
		holds = true
	})
	return ctx, func(isSlow bool) {
		timer.Stop()
		cancel(nil)
		l.mu.Lock()
		defer l.mu.Unlock()
		ended = true
		if delete(l.slow, key); isSlow || late {
			l.slow[key] = true
		}
		if holds {
			l.room++
		}
	}, true
}

// forget drops what is known of a cluster.
func (l *lanes) forget(key client.ObjectKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.slow, key)
}
