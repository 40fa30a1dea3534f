// SPDX-License-Identifier: Apache-2.0

package render

import (
	"crypto/sha256"
	"errors"
	"time"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/retry"
)

const (
	// maxPauses has room for about 1,000 renderings that a worker was killed for.
	maxPauses = 512 << 10 // bytes
	ofPause   = 448       // bytes
)

// pauses remember requests, by their content, that took all the time or memory of a worker.
//
// Key: the digest of the request.
// Bound: maxPauses bytes, which namespaces share.
// Lost with it: a request may take all of a worker once more.
type pauses struct {
	now   func() time.Time
	after *budget.Cache[[sha256.Size]byte, pause]
}

type pause struct {
	failure *failure.Error
	tries   int
	until   time.Time
}

func newPauses() pauses {
	return pauses{now: time.Now, after: budget.NewCache[[sha256.Size]byte](nil, maxPauses, func(pause) int64 { return ofPause })}
}

// failure returns how a request ended the last time, nil if it may be tried.
func (p *pauses) failure(request [sha256.Size]byte) *failure.Error {
	if known, ok := p.after.Get(request); ok && p.now().Before(known.until) {
		return known.failure
	}
	return nil
}

// record keeps how a request ended.
func (p *pauses) record(of budget.Tenant, request [sha256.Size]byte, err error) {
	failed, ok := errors.AsType[*failure.Error](err)
	if !ok || failed.Reason != job.ReasonRenderTimeout && failed.Reason != job.ReasonOutOfMemory {
		p.after.Remove(request)
		return
	}
	p.after.Change(of, request, func(known *pause) {
		*known = pause{failure: failed, tries: known.tries + 1, until: p.now().Add(retry.Rendering.After(known.tries))}
	})
}
