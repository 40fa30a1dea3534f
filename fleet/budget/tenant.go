// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"context"
	"sync"
)

// Tenant is for whom something is held. All of a namespace that is for no cluster is one tenant. The zero value is the
// process itself.
type Tenant struct {
	Namespace, Cluster string
	// Last says that the claims of all others are granted first.
	Last bool
}

// owner returns the tenant whose limit counts: a cluster has one, whatever of it comes last.
func (t Tenant) owner() Tenant { return Tenant{Namespace: t.Namespace, Cluster: t.Cluster} }

type (
	tenantKey struct{}
	waitKey   struct{}
	holderKey struct{}
)

// WithTenant returns a context that says for whom something is done.
func WithTenant(ctx context.Context, of Tenant) context.Context {
	return context.WithValue(ctx, tenantKey{}, of)
}

// TenantOf returns the tenant of a context.
func TenantOf(ctx context.Context) Tenant {
	of, _ := ctx.Value(tenantKey{}).(Tenant)
	return of
}

// WithWait returns a context that has a function called before a claim waits. The function mustn't wait.
func WithWait(ctx context.Context, wait func()) context.Context {
	return context.WithValue(ctx, waitKey{}, wait)
}

// holder has claims whose bytes are still used.
type holder struct {
	mu       sync.Mutex
	claims   []*Claim
	released bool
}

// Holding returns a context in which answers count until release is called, and not only until they are read.
func Holding(ctx context.Context) (_ context.Context, release func()) {
	h := &holder{}
	return context.WithValue(ctx, holderKey{}, h), h.release
}

func (h *holder) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.released = true
	for _, c := range h.claims {
		c.End()
	}
	h.claims = nil
}

// Release ends a claim whose bytes were read for a context: now, or once the context's holder releases them.
func (c *Claim) Release(ctx context.Context) {
	if c == nil {
		return
	}
	h, _ := ctx.Value(holderKey{}).(*holder)
	if h == nil {
		c.End()
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.released {
		c.End()
		return
	}
	c.Settle()
	h.claims = append(h.claims, c)
}
