// SPDX-License-Identifier: Apache-2.0

// Package lanes keeps slow clusters from holding all workers.
package lanes

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/fleet/budget"
)

// SlowAfter is how long a reconcile may hold a worker before it counts as slow.
const SlowAfter = 10 * time.Second

// ErrYield ends a reconcile that became slow while there was no room for one.
var ErrYield = errors.New("the reconcile takes long, and gives way to others")

// Lanes keep slow clusters from holding all workers. At most half of the workers are for reconciles
// that take long or wait for memory, and for clusters whose last one did; three quarters of these are for one namespace, and an
// eighth is left to namespaces that have at most one.
// A reconcile that becomes slow while there is no room gives up its worker: the records have what it did.
//
// Key: the ClusterAddon.
// Bound: those whose last reconcile was slow.
// Lost with it: a slow cluster may hold a worker once more.
type Lanes struct {
	clock clock.WithDelayedExecution
	room  *budget.Budget // for slow reconciles

	mu   sync.Mutex
	slow map[client.ObjectKey]bool
}

// New returns the lanes of a number of workers.
func New(workers int, clock clock.WithDelayedExecution) *Lanes {
	all := int64(max(1, workers/2))
	room := budget.New(budget.Limits{All: all, Namespace: max(1, all*3/4), Reserve: all / 8, Entry: 1})
	return &Lanes{clock: clock, room: room, slow: map[client.ObjectKey]bool{}}
}

// Enter begins a reconcile. It is false if there is no room for it: it is to come again after retry.Room.
// The caller says at the end whether the cluster became unreachable, or waited for memory in vain.
func (l *Lanes) Enter(ctx context.Context, key client.ObjectKey) (_ context.Context, leave func(isSlow bool), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lane := l.room.Claim(budget.Tenant{Namespace: key.Namespace}, 1)
	if l.slow[key] && !lane.Try(1) {
		return nil, nil, false
	}
	ctx, cancel := context.WithCancelCause(ctx)
	ended, late := false, false
	slow := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if late = true; ended {
			return
		}
		l.slow[key] = true
		if !lane.Try(1) {
			cancel(ErrYield)
		}
	}
	timer := l.clock.AfterFunc(SlowAfter, slow)
	return budget.WithWait(ctx, slow), func(isSlow bool) {
		timer.Stop()
		cancel(nil)
		l.mu.Lock()
		defer l.mu.Unlock()
		ended = true
		if delete(l.slow, key); isSlow || late {
			l.slow[key] = true
		}
		lane.End()
	}, true
}

// IsSlow reports whether the cluster's last reconcile was slow.
func (l *Lanes) IsSlow(key client.ObjectKey) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.slow[key]
}

// Forget drops what is known of a cluster.
func (l *Lanes) Forget(key client.ObjectKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.slow, key)
}
