// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// queue is where requests wait for workers. A namespace may have all workers, another one finds one more, and so does a third one. A
// fourth one gets a worker of a namespace that has several. So none waits for what takes others long. Requests of tenants that come last, as plans,
// wait for all others, and leave a worker to these.
type queue struct {
	slots   *budget.Budget
	turns   *turns
	files   files
	closing context.Context //nolint:containedctx // it ends with the renderer
}

// Patience is how long the calls of one reconcile use workers, and wait for them, all together. It is less than what makes
// a cluster slow.
const Patience = 8 * time.Second

type patienceKey struct{}

// WithPatience returns a context for the calls of one reconcile. After so much time, those that need a worker fail with
// [job.ReasonWaitingForRenderer], so that the reconcile comes to its end, and says so.
func WithPatience(ctx context.Context, patience time.Duration) context.Context {
	left := &atomic.Int64{}
	left.Store(int64(patience))
	return context.WithValue(ctx, patienceKey{}, left)
}

// join waits for a worker. It returns the context of its use, which ends by errGaveWay if another namespace gets the worker. The
// caller has to leave when the worker has answered.
func (q *queue) join(ctx context.Context, t *task) (use context.Context, leave func(), _ error) {
	waiting, cancel := context.WithCancel(budget.WithWait(ctx, nil)) // one that is patient here needs no lane
	defer cancel()
	defer context.AfterFunc(q.closing, cancel)()
	begun := time.Now()
	left, _ := ctx.Value(patienceKey{}).(*atomic.Int64)
	if left != nil {
		if left.Load() <= 0 {
			return nil, nil, waits("other charts of the cluster took their time")
		}
		waiting, cancel = context.WithTimeout(waiting, time.Duration(left.Load()))
		defer cancel()
	}
	drop, ok := q.files.add(budget.TenantOf(ctx), t)
	if !ok {
		return nil, nil, waits("the files of other charts take all memory that there is for them")
	}
	of := budget.TenantOf(ctx)
	if of.Last {
		of = budget.Tenant{Last: true} // the share of its namespace is for others
	}
	slot := q.slots.Claim(of, 1)
	giveBack := func() {
		slot.End()
		drop()
		if left != nil {
			left.Add(-int64(time.Since(begun)))
		}
	}
	if !slot.Try(1) && !of.Last { // those may wait for long
		q.turns.wait(of.Namespace)
		defer q.turns.leave(of.Namespace)
	}
	if slot.Grow(waiting, 1) == nil {
		use, end := q.turns.begin(ctx, of.Namespace)
		return use, func() { end(); giveBack() }, nil
	}
	giveBack()
	switch {
	case q.closing.Err() != nil:
		return nil, nil, ErrClosed
	case ctx.Err() != nil:
		return nil, nil, fmt.Errorf("wait for a render worker: %w", context.Cause(ctx))
	}
	return nil, nil, waits("all processes that render charts are busy")
}

// waits returns the error of a request that comes again.
func waits(why string) *failure.Error {
	failed := failure.New(job.ReasonWaitingForRenderer, "it is rendered later: %s", why)
	failed.Wait, failed.RetryAfter = true, retry.Moment
	return failed
}

// files are those of the charts and manifests that wait for workers. What many clusters have in common counts once, for the
// one that came first.
//
// Key: the digest of the files.
// Bound: the budget.
// Lost with it: nothing, as the requests end with the process.
type files struct {
	memory *budget.Budget

	mu    sync.Mutex
	known map[string]*usedFiles
}

type usedFiles struct {
	claim *budget.Claim
	users int
}

// add counts the files of a task until they are dropped; false if there is no room for them now. What is opened for sources
// counts there.
func (f *files) add(of budget.Tenant, t *task) (drop func(), ok bool) {
	if !t.req.MakesObjects() {
		return func() {}, true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	key := t.req.ContentsDigest
	used := f.known[key]
	if used == nil {
		used = &usedFiles{claim: f.memory.Claim(of, t.contentBytes)}
		if !used.claim.Try(t.contentBytes) {
			return nil, false
		}
		f.known[key] = used
	}
	used.users++
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if used.users--; used.users == 0 {
			used.claim.End()
			delete(f.known, key)
		}
	}, true
}
