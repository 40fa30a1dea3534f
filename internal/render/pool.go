// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/protocol"
)

// ErrClosed is returned by a Renderer after Close.
var ErrClosed = errors.New("renderer is closed")

// pool starts worker processes when they are needed, and ends them.
type pool struct {
	opts Options

	starts  chan func()
	closing context.Context //nolint:containedctx // it ends with the pool
	end     context.CancelFunc

	mu    sync.Mutex
	idle  []*process // last in, first out: the warmest is used first
	alive map[*process]struct{}
}

func newPool(opts Options) *pool {
	closing, end := context.WithCancel(context.Background())
	l := &pool{opts: opts, starts: make(chan func()), closing: closing, end: end, alive: map[*process]struct{}{}}
	go l.startWorkers()
	return l
}

// close kills all workers and waits for their end.
func (l *pool) close() {
	l.mu.Lock()
	l.end()
	alive := slices.Collect(maps.Keys(l.alive))
	l.idle = nil
	l.mu.Unlock()
	for _, p := range alive {
		l.retire(p)
	}
}

// serve has a request answered by a worker, a fresh one if a used one died of it.
func (l *pool) serve(ctx context.Context, t *task) (*protocol.Response, error) {
	p, err := l.acquire(ctx)
	if err != nil {
		return nil, err
	}
	resp, err := l.attempt(ctx, p, t)
	if errors.Is(err, errWornOut) {
		if p, err = l.start(ctx); err != nil {
			return nil, err
		}
		return l.attempt(ctx, p, t)
	}
	return resp, err
}

// errWornOut means that a worker with a past died: its end may be the fault of an earlier
// request, so that this request deserves a fresh one.
var errWornOut = errors.New("used render worker died")

// attempt has the request answered by p, and gives p back or ends it.
func (l *pool) attempt(ctx context.Context, p *process, t *task) (*protocol.Response, error) {
	used := p.served > 0
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go p.limit(limited, t.timeout, cancel)
	resp, err := p.exchange(limited, t, job.MostMade.FrameBytes())
	if err == nil {
		l.release(p, resp)
		return resp, nil
	}
	l.retire(p)
	switch {
	case l.closing.Err() != nil:
		return nil, ErrClosed
	case errors.Is(err, protocol.ErrFrameTooLarge):
		return nil, failure.New(job.ReasonOutputTooLarge, "the rendered output is larger than allowed; make it smaller")
	case errors.Is(context.Cause(limited), errTimeout) && t.timeout < l.opts.Timeout:
		return nil, failure.New(job.ReasonRenderTimeout, "took longer than %s; make it smaller", t.timeout)
	case errors.Is(context.Cause(limited), errTimeout):
		return nil, failure.New(job.ReasonRenderTimeout, "took longer than %s, stopped while %s; make it simpler, or raise --render-timeout", t.timeout, p.stage)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("stopped while %s: %w", p.stage, context.Cause(ctx))
	case errors.Is(err, protocol.ErrUnexpected):
		return nil, err
	case used:
		return nil, errWornOut
	}
	return nil, p.postMortem()
}

// acquire returns an idle worker, which may have died, or starts one.
func (l *pool) acquire(ctx context.Context) (*process, error) {
	l.mu.Lock()
	for len(l.idle) > 0 {
		p := l.idle[len(l.idle)-1]
		l.idle = l.idle[:len(l.idle)-1]
		if p.idleTimer.Stop() { // else its timer retires it just now
			l.mu.Unlock()
			return p, nil
		}
	}
	l.mu.Unlock()
	return l.start(ctx)
}

// start returns a new worker that is ready.
func (l *pool) start(ctx context.Context) (*process, error) {
	var p *process
	var err error
	started := make(chan struct{})
	select {
	case l.starts <- func() { p, err = startProcess(l.opts.MemoryBytes); close(started) }:
	case <-l.closing.Done():
		return nil, ErrClosed
	}
	<-started
	if err != nil {
		return nil, fmt.Errorf("start render worker: %w", err)
	}
	l.mu.Lock()
	l.alive[p] = struct{}{}
	closed := l.closing.Err() != nil
	l.mu.Unlock()
	if closed {
		l.retire(p)
		return nil, ErrClosed
	}
	ready, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := p.awaitReady(ready); err != nil {
		l.retire(p)
		return nil, fmt.Errorf("start render worker: %w", err)
	}
	return p, nil
}

// startWorkers starts every worker from one thread that lives as long as the Renderer: the
// kernel ends a child with the thread, not the process, that is its parent (Pdeathsig).
func (l *pool) startWorkers() {
	runtime.LockOSThread()
	for {
		select {
		case start := <-l.starts:
			start()
		case <-l.closing.Done():
			return
		}
	}
}

// release gives a worker back to the pool, or ends it when it is worn out.
func (l *pool) release(p *process, resp *protocol.Response) {
	p.served++
	if resp.Retire || p.served >= l.opts.RequestsPerWorker || resp.MemoryBytes > l.opts.MemoryBytes/2 {
		l.retire(p)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing.Err() != nil {
		return // Close has it in hand
	}
	p.idleTimer = time.AfterFunc(l.opts.IdleTimeout, func() { l.retire(p) })
	l.idle = append(l.idle, p)
}

// retire ends a worker and waits until it is gone.
func (l *pool) retire(p *process) {
	p.end()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.alive, p)
	l.idle = slices.DeleteFunc(l.idle, func(other *process) bool { return other == p })
}
