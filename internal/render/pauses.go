// SPDX-License-Identifier: Apache-2.0

package render

import (
	"crypto/sha256"
	"errors"
	"sync"
	"time"
)

// How long a rendering isn't tried again that a worker was killed for: the pause doubles
// each time. How many are remembered.
const (
	firstPause, lastPause = time.Minute, time.Hour
	maxPauses             = 1000
)

// pauses remember requests, by their content, that took all the time or memory of a worker.
type pauses struct {
	now func() time.Time

	mu    sync.Mutex
	after map[[sha256.Size]byte]pause
}

type pause struct {
	failure *Error
	length  time.Duration
	until   time.Time
}

// failure returns how a request ended the last time, nil if it may be tried.
func (p *pauses) failure(request [sha256.Size]byte) *Error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, ok := p.after[request]; ok && p.now().Before(known.until) {
		return known.failure
	}
	return nil
}

// note takes in how a request ended.
func (p *pauses) note(request [sha256.Size]byte, err error) {
	failed, ok := errors.AsType[*Error](err)
	killed := ok && (failed.Reason == ReasonRenderTimeout || failed.Reason == ReasonOutOfMemory)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !killed {
		delete(p.after, request)
		return
	}
	known := p.after[request]
	known.failure, known.length = failed, min(max(2*known.length, firstPause), lastPause)
	known.until = p.now().Add(known.length)
	if _, again := p.after[request]; !again && len(p.after) >= maxPauses {
		p.forgetOne()
	}
	p.after[request] = known
}

// forgetOne drops the pause that ends first.
func (p *pauses) forgetOne() {
	var first [sha256.Size]byte
	var until time.Time
	for request, known := range p.after {
		if until.IsZero() || known.until.Before(until) {
			first, until = request, known.until
		}
	}
	delete(p.after, first)
}
