// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/protocol"
	"github.com/cluster-chandler/chandler/internal/shares"
)

// ErrClosed is returned by a Renderer after Close.
var ErrClosed = errors.New("renderer is closed")

// Renderer renders in a pool of worker processes. It is safe for concurrent use.
type Renderer struct {
	opts    Options
	slots   *shares.Shares
	pauses  pauses
	answers *sharedAnswers

	startOnce sync.Once
	starts    chan chan startResult
	closing   chan struct{}

	mu     sync.Mutex
	closed bool
	idle   []*process // last in, first out: the warmest is used first
	alive  map[*process]struct{}
}

type startResult struct {
	process *process
	err     error
}

// New returns a Renderer. Workers are started when they are needed first.
func New(opts Options) *Renderer {
	opts = opts.withDefaults()
	return &Renderer{
		opts:    opts,
		slots:   shares.NewWithSpare(int64(opts.Workers)),
		answers: newSharedAnswers(),
		pauses:  newPauses(),
		starts:  make(chan chan startResult),
		closing: make(chan struct{}),
		alive:   map[*process]struct{}{},
	}
}

// Close kills all workers and waits for their end. Renderings under way fail with ErrClosed.
func (r *Renderer) Close() {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return
	}
	r.closed = true
	close(r.closing)
	alive := slices.Collect(maps.Keys(r.alive))
	r.idle = nil
	r.mu.Unlock()
	for _, p := range alive {
		r.retire(p)
	}
}

// do has one request answered, by a worker or by the answer to an equal one. With an [Error] there
// may be a response, too.
func (r *Renderer) do(ctx context.Context, req *protocol.Request) (*protocol.Response, error) {
	req.Limits = r.opts.limits()
	task, err := newTask(req)
	if err != nil {
		return nil, err
	}
	if n := task.size(); n > r.opts.InputBytes {
		return nil, job.Failf(job.ReasonChartInvalid, "its files, values and facts take %d bytes, at most %d; make it smaller", n, r.opts.InputBytes)
	}
	share, err := sharingOf(req)
	if err != nil {
		return nil, err
	}
	if r.isClosed() {
		return nil, ErrClosed
	}
	if resp := r.answers.find(share); resp != nil {
		return resp, nil
	}
	digest := sha256.Sum256(task.payload)
	if failed := r.pauses.failure(digest); failed != nil {
		return nil, failed
	}
	slot := r.slots.Claim(shares.TenantOf(ctx), 1)
	defer slot.Release()
	select {
	case <-slot.Granted():
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for a render worker: %w", context.Cause(ctx))
	case <-r.closing:
		return nil, ErrClosed
	}
	if resp := r.answers.find(share); resp != nil { // for another one, while this waited
		return resp, nil
	}
	resp, err := r.serve(ctx, task)
	if req.MakesObjects() {
		result := resultRendered
		if err != nil || resp.Failure != nil {
			result = resultFailed
		}
		renderingsTotal.WithLabelValues(result).Inc()
	}
	if err == nil || ctx.Err() == nil {
		r.pauses.note(digest, err)
	}
	if err != nil {
		return nil, err
	}
	if f := resp.Failure; f != nil {
		return resp, &job.Error{Reason: f.Reason, Err: errors.New(f.Message)}
	}
	r.answers.keep(share, resp)
	return resp, nil
}

// serve has a request answered by a worker, a fresh one if a used one died of it.
func (r *Renderer) serve(ctx context.Context, t *task) (*protocol.Response, error) {
	p, err := r.acquire(ctx)
	if err != nil {
		return nil, err
	}
	resp, err := r.attempt(ctx, p, t)
	if errors.Is(err, errWornOut) {
		if p, err = r.start(ctx); err != nil {
			return nil, err
		}
		return r.attempt(ctx, p, t)
	}
	return resp, err
}

// errWornOut means that a worker with a past died: its end may be the fault of an earlier
// request, so that this request deserves a fresh one.
var errWornOut = errors.New("used render worker died")

// attempt has the request answered by p, and gives p back or ends it.
func (r *Renderer) attempt(ctx context.Context, p *process, t *task) (*protocol.Response, error) {
	used := p.served > 0
	limited, cancel := context.WithTimeoutCause(ctx, r.opts.Timeout, errTimeout)
	defer cancel()
	resp, err := p.exchange(limited, t, r.opts.limits().FrameBytes())
	if err == nil {
		r.release(p, resp)
		return resp, nil
	}
	r.retire(p)
	switch {
	case r.isClosed():
		return nil, ErrClosed
	case errors.Is(err, protocol.ErrFrameTooLarge):
		return nil, job.Failf(job.ReasonOutputTooLarge, "the rendered output is larger than allowed; make it smaller")
	case errors.Is(context.Cause(limited), errTimeout):
		return nil, job.Failf(job.ReasonRenderTimeout, "took longer than %s, stopped while %s; make it simpler, or raise --render-timeout", r.opts.Timeout, p.stage)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("stopped while %s: %w", p.stage, context.Cause(ctx))
	case errors.Is(err, protocol.ErrUnexpected):
		return nil, err
	case used:
		return nil, errWornOut
	}
	return nil, p.postMortem()
}

// acquire returns an idle worker, or starts one.
func (r *Renderer) acquire(ctx context.Context) (*process, error) {
	r.mu.Lock()
	for len(r.idle) > 0 {
		p := r.idle[len(r.idle)-1]
		r.idle = r.idle[:len(r.idle)-1]
		if !p.idleTimer.Stop() {
			continue // its timer retires it just now
		}
		if p.running() {
			r.mu.Unlock()
			return p, nil
		}
		r.mu.Unlock()
		r.retire(p)
		r.mu.Lock()
	}
	r.mu.Unlock()
	return r.start(ctx)
}

// start returns a new worker that is ready.
func (r *Renderer) start(ctx context.Context) (*process, error) {
	r.startOnce.Do(func() { go r.startWorkers() })
	reply := make(chan startResult, 1)
	select {
	case r.starts <- reply:
	case <-r.closing:
		return nil, ErrClosed
	}
	started := <-reply
	if started.err != nil {
		return nil, fmt.Errorf("start render worker: %w", started.err)
	}
	p := started.process
	r.mu.Lock()
	r.alive[p] = struct{}{}
	closed := r.closed
	r.mu.Unlock()
	if closed {
		r.retire(p)
		return nil, ErrClosed
	}
	ready, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := p.awaitReady(ready); err != nil {
		r.retire(p)
		return nil, fmt.Errorf("start render worker: %w", err)
	}
	return p, nil
}

// startWorkers starts every worker from one thread that lives as long as the Renderer: the
// kernel ends a child with the thread, not the process, that is its parent (Pdeathsig).
func (r *Renderer) startWorkers() {
	runtime.LockOSThread()
	for {
		select {
		case reply := <-r.starts:
			p, err := startProcess(r.opts.MemoryBytes)
			reply <- startResult{p, err}
		case <-r.closing:
			return
		}
	}
}

// release gives a worker back to the pool, or ends it when it is worn out.
func (r *Renderer) release(p *process, resp *protocol.Response) {
	p.served++
	if resp.Retire || p.served >= r.opts.RequestsPerWorker || resp.MemoryBytes > r.opts.MemoryBytes/2 {
		r.retire(p)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return // Close has it in hand
	}
	p.idleTimer = time.AfterFunc(r.opts.IdleTimeout, func() { r.retire(p) })
	r.idle = append(r.idle, p)
}

// retire ends a worker and waits until it is gone.
func (r *Renderer) retire(p *process) {
	p.end()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.alive, p)
	r.idle = slices.DeleteFunc(r.idle, func(other *process) bool { return other == p })
}

func (r *Renderer) isClosed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}
