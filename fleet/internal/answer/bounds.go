// SPDX-License-Identifier: Apache-2.0

// Package answer bounds what an API server answers with, however hostile it is.
package answer

import (
	"math"
	"net/http"
	"strconv"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/fleet/limits"
)

const (
	// maxProbe is how many bytes the answer to a probe may have. The annotations of a namespace have 256 KiB at most.
	maxProbe = 512 << 10
	// minPage is what each further page of a list counts at least, in bytes. So the default allows no more
	// than a thousand pages.
	minPage = 32 << 10
	// maxRetryAfter is how long a server may ask to be left alone, in seconds.
	maxRetryAfter = 60
	// maxPaged is how many lists are known that had pages: they are read one page after the other.
	maxPaged = 1000
)

// Bounds bound the answers on one transport.
//
// Key: the address of a list.
// Bound: maxPaged lists.
// Lost with it: the pages of a list count from zero.
type Bounds struct {
	limits limits.Limits
	clock  clock.PassiveClock
	memory *budget.Budget
	tenant budget.Tenant
	pages  *lru.Cache // bytes that the pages of a list have had, by its address
}

// NewBounds returns Bounds by some limits, which are complete. All answers count in a budget for the tenant.
func NewBounds(by limits.Limits, clock clock.PassiveClock, memory *budget.Budget, tenant budget.Tenant) *Bounds {
	return &Bounds{limits: by, clock: clock, memory: memory, tenant: tenant, pages: lru.New(maxPaged)}
}

// Begin returns the body of the answer that a request is to get, once there is room for its beginning. A probe needs none: that
// there is little memory mustn't look as if the cluster didn't answer.
func (b *Bounds) Begin(request *http.Request, asked Asked) (*Body, error) {
	body := &Body{request: request, asked: asked}
	switch asked {
	case Watch:
		b.boundWatch(body)
	case Probe:
		body.limit = maxProbe
		return body, nil
	case List, Page:
		b.boundList(body)
	case Object, Document:
		body.limit = max(b.limits.Object, 0)
	}
	body.claim = b.memory.Claim(b.tenant, body.most())
	return body, body.hold(0)
}

// boundList limits a list by what its pages have had, too.
func (b *Bounds) boundList(body *Body) {
	if body.asked == Page {
		body.limit = max(b.limits.Object, 0)
	}
	if b.limits.List < 0 {
		return
	}
	query := body.request.URL.Query()
	of := body.request.URL.Path + "?" + query.Get("labelSelector") + "&" + query.Get("fieldSelector")
	if query.Get("continue") != "" {
		known, _ := b.pages.Get(of)
		body.had, _ = known.(int64)
	}
	body.list = b.limits.List
	body.ended = func(size int64) { b.pages.Add(of, body.had+max(size, minPage)) }
}

// boundWatch limits the events of a watch.
func (b *Bounds) boundWatch(body *Body) {
	if b.limits.WatchRate > 0 {
		saved := b.limits.List
		if saved < 0 {
			saved = math.MaxInt32
		}
		body.clock, body.rate = b.clock, rate.NewLimiter(rate.Limit(b.limits.WatchRate), int(saved))
	}
	body.limit = max(b.limits.Object, 0)
}

// Bound limits the body of an answer, the time that the server asks for, and the words of a refusal.
func (b *Body) Bound(response *http.Response) {
	if after, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && after > maxRetryAfter {
		response.Header.Set("Retry-After", strconv.Itoa(maxRetryAfter))
	}
	b.ReadCloser, response.Body = response.Body, b
	if b.limit > 0 || b.list > 0 || b.claim != nil {
		b.sizer = sizerOf(response.Header, b.asked == Watch)
	}
	boundWords(response)
}
