// SPDX-License-Identifier: Apache-2.0

package render

import (
	"crypto/sha256"
	"errors"
	"time"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/lru"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// maxPauses is how many renderings are remembered that a worker was killed for.
const maxPauses = 1000

// pauses remember requests, by their content, that took all the time or memory of a worker.
//
// Key: the digest of the request.
// Bound: maxPauses requests.
// Lost with it: a request may take all of a worker once more.
type pauses struct {
	now   func() time.Time
	after *lru.Cache[[sha256.Size]byte, pause]
}

type pause struct {
	failure *failure.Error
	tries   int
	until   time.Time
}

func newPauses() pauses {
	return pauses{now: time.Now, after: lru.New[[sha256.Size]byte](maxPauses, lru.One[pause])}
}

// failure returns how a request ended the last time, nil if it may be tried.
func (p *pauses) failure(request [sha256.Size]byte) *failure.Error {
	if known, ok := p.after.Get(request); ok && p.now().Before(known.until) {
		return known.failure
	}
	return nil
}

// record keeps how a request ended.
func (p *pauses) record(request [sha256.Size]byte, err error) {
	failed, ok := errors.AsType[*failure.Error](err)
	if !ok || failed.Reason != job.ReasonRenderTimeout && failed.Reason != job.ReasonOutOfMemory {
		p.after.Remove(request)
		return
	}
	p.after.Change(request, func(known *pause) {
		*known = pause{failure: failed, tries: known.tries + 1, until: p.now().Add(retry.Rendering.After(known.tries))}
	})
}
