// SPDX-License-Identifier: Apache-2.0

package render

import (
	"time"

	"github.com/cluster-chandler/chandler/internal/artifact/opener"
	"github.com/cluster-chandler/chandler/internal/render/protocol"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// FirstPause is how long a rendering isn't tried again that a worker was killed for.
var FirstPause = retry.Rendering.First

// SetClock sets the time by which pauses end.
func (r *Renderer) SetClock(now func() time.Time) { r.pauses.now = now }

// PIDs returns the workers that live.
func (r *Renderer) PIDs() []int {
	r.pool.mu.Lock()
	defer r.pool.mu.Unlock()
	var pids []int
	for p := range r.pool.alive {
		pids = append(pids, p.cmd.Process.Pid)
	}
	return pids
}

// Served returns how many requests the workers have answered that live.
func (r *Renderer) Served() (n int) {
	r.pool.mu.Lock()
	defer r.pool.mu.Unlock()
	for p := range r.pool.alive {
		n += p.served
	}
	return n
}

// Waiting returns how many requests wait for workers.
func (r *Renderer) Waiting() int { return r.queue.slots.Usage().Waiting }

// IndexTimeout returns how long a worker reads an index of so many bytes, with the default for other jobs.
func IndexTimeout(bytes int) time.Duration {
	t, _ := newTask(&protocol.Request{Open: &opener.Job{Index: &opener.Index{Data: make([]byte, bytes)}}}, Options{}.withDefaults().Timeout)
	return t.timeout
}
