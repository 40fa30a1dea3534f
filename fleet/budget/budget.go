// SPDX-License-Identifier: Apache-2.0

// Package budget divides among tenants what a process has little of: bytes of memory, or workers.
//
// A [Claim] grows as its bytes arrive, and ends when they are dropped. Growth that would exceed a limit waits. No claim can
// wait for ever, however many there are: a claim says how much it may come to hold, and growth is granted only while all
// others can still come to their end. Entries of a [Cache] give way to claims.
package budget

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Limits are how many units all tenants, a namespace, a cluster, and all tenants that come last may hold. A field that is 0 means
// no limit.
type Limits struct {
	All, Namespace, Cluster, Last int64
	// Reserve is how much of All is left to namespaces that hold no more than Entry.
	Reserve, Entry int64
}

// Budget counts the units that tenants hold. A nil one grants everything, and counts nothing.
//
// Key: the tenant.
// Bound: the limits.
// Lost with it: nothing, as all that is counted ends with the process.
type Budget struct {
	limits Limits

	mu      sync.Mutex
	held    holdings
	ending  map[*Claim]struct{} // those that hold units, and don't last
	waiting []*wish             // the first has waited longest
	cached  holdings            // of all caches
	caches  []evictable
}

// wish is the growth of a claim that isn't granted yet.
type wish struct {
	claim   *Claim
	to      int64
	granted chan struct{}
}

// New returns a budget that holds nothing.
func New(limits Limits) *Budget {
	return &Budget{limits: limits, held: newHoldings(), cached: newHoldings(), ending: map[*Claim]struct{}{}}
}

// ErrTooLarge is the error of a claim that may never hold what it asks for.
var ErrTooLarge = errors.New("more than is allowed")

// Claim is the units that something holds. A nil one holds nothing.
type Claim struct {
	budget     *Budget
	of         Tenant
	held, most int64
	lasts      bool // no other claim may count on its end
	ended      bool
}

// Claim returns a claim that holds nothing yet, and may come to hold so many units, or as many as the tenant may hold.
func (b *Budget) Claim(of Tenant, most int64) *Claim {
	if b == nil {
		return nil
	}
	return &Claim{budget: b, of: of, most: b.limits.most(of, most)}
}

// Lasting returns a claim of something that is held for long, so that no other claim waits for its end. It holds nothing yet.
func (b *Budget) Lasting(of Tenant) *Claim {
	if b == nil {
		return nil
	}
	return &Claim{budget: b, of: of, lasts: true}
}

// Grow has the claim hold so many units in all, once there is room for them. It returns the context's error, or one that is
// ErrTooLarge. A claim that holds as many already doesn't change.
func (c *Claim) Grow(ctx context.Context, to int64) error {
	if c == nil {
		return nil
	}
	b := c.budget
	b.mu.Lock()
	if c.ended || to <= c.held {
		b.mu.Unlock()
		return nil
	}
	c.most = max(c.most, to)
	if level, limit := b.limits.exceeded(balance{}, c.of, c.most); level != none {
		b.mu.Unlock()
		return fmt.Errorf("%d bytes are %w: %s may hold %d", c.most, ErrTooLarge, level.words(c.of), limit)
	}
	w := &wish{claim: c, to: to, granted: make(chan struct{})}
	if next(b.limits, b.held, b.ending, []*wish{w}) == 0 { // nothing else changed, so that all that wait go on waiting
		b.give(w)
		b.mu.Unlock()
		return nil
	}
	b.waiting = append(b.waiting, w)
	b.mu.Unlock()
	if wait, _ := ctx.Value(waitKey{}).(func()); wait != nil {
		wait()
	}
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	at := slices.Index(b.waiting, w)
	if at < 0 {
		return nil // it was granted meanwhile
	}
	b.waiting = slices.Delete(b.waiting, at, at+1)
	return fmt.Errorf("%s has all the memory that it may have: %w", b.full(c), context.Cause(ctx))
}

// full returns who has so much that a claim can't come to its end now, in words.
func (b *Budget) full(c *Claim) string {
	level, _ := b.limits.exceeded(b.held.of(c.of), c.of, c.most-c.held)
	return level.words(c.of)
}

// Try is like [Claim.Grow], but doesn't wait. It returns false if there is no room now.
func (c *Claim) Try(to int64) bool { return c.Grow(over, to) == nil }

// over is a context that has ended.
var over = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// Shrink has the claim hold at most so many units. It may grow again.
func (c *Claim) Shrink(to int64) {
	if c != nil {
		c.change(func() { c.budget.hold(c, min(c.held, to)) })
	}
}

// Settle says that the claim doesn't grow any more.
func (c *Claim) Settle() {
	if c != nil {
		c.change(func() { c.most = c.held })
	}
}

// End gives back all that the claim holds.
func (c *Claim) End() {
	if c != nil {
		c.change(func() { c.budget.hold(c, 0); c.ended = true })
	}
}

// change changes a claim that hasn't ended, and lets others have what that frees.
func (c *Claim) change(change func()) {
	c.budget.mu.Lock()
	defer c.budget.mu.Unlock()
	if !c.ended {
		change()
		c.budget.grant()
	}
}

// hold sets what a claim holds.
func (b *Budget) hold(c *Claim, units int64) {
	b.held.add(c.of, units-c.held)
	c.held = units
	if c.held > 0 && !c.lasts {
		b.ending[c] = struct{}{}
	} else {
		delete(b.ending, c)
	}
}

// grant gives claims that wait what can be given, and has caches drop what is in their way.
func (b *Budget) grant() {
	for len(b.waiting) > 0 {
		at := next(b.limits, b.held, b.ending, b.waiting)
		if at < 0 {
			return
		}
		w := b.waiting[at]
		b.waiting = slices.Delete(b.waiting, at, at+1)
		b.give(w)
	}
}

func (b *Budget) give(w *wish) {
	b.hold(w.claim, w.to)
	b.evict(w.claim.of.Namespace)
	close(w.granted)
}

// Usage is what a budget counts now.
type Usage struct {
	// Claimed are the units of claims, and Cached those of caches.
	Claimed, Cached int64
	// Waiting is how many claims wait.
	Waiting int
}

// Usage returns what is counted now.
func (b *Budget) Usage() Usage {
	if b == nil {
		return Usage{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return Usage{Claimed: b.held.all, Cached: b.cached.all, Waiting: len(b.waiting)}
}
