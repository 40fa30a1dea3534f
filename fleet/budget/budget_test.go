// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cluster-chandler/chandler/fleet/budget"
)

func tenant(namespace, cluster string) budget.Tenant {
	return budget.Tenant{Namespace: namespace, Cluster: cluster}
}

func last(namespace, cluster string) budget.Tenant {
	return budget.Tenant{Namespace: namespace, Cluster: cluster, Last: true}
}

// grown reports whether the growth of a claim is granted at once.
func grown(c *budget.Claim, to int64) bool { return c.Try(to) }

func TestLimits(t *testing.T) {
	limits := budget.Limits{All: 100, Namespace: 60, Cluster: 40, Last: 30}
	for name, tc := range map[string]struct {
		held    map[budget.Tenant]int64
		of      budget.Tenant
		to      int64
		grants  bool
		refused bool
	}{
		"nothing is held":                     {of: tenant("a", "1"), to: 40, grants: true},
		"a cluster has more than it may":      {of: tenant("a", "1"), to: 41, refused: true},
		"a namespace has more than it may":    {of: tenant("a", ""), to: 61, refused: true},
		"the process has more than it may":    {of: tenant("", ""), to: 101, refused: true},
		"its cluster has all that it may":     {held: map[budget.Tenant]int64{tenant("a", "1"): 40}, of: tenant("a", "1"), to: 1},
		"another cluster has":                 {held: map[budget.Tenant]int64{tenant("a", "1"): 40}, of: tenant("a", "2"), to: 20, grants: true},
		"its namespace has, by two clusters":  {held: map[budget.Tenant]int64{tenant("a", "1"): 40, tenant("a", "2"): 20}, of: tenant("a", "3"), to: 1},
		"the same names in another namespace": {held: map[budget.Tenant]int64{tenant("a", "1"): 40, tenant("a", "2"): 20}, of: tenant("b", "1"), to: 40, grants: true},
		"what comes last has all that it may": {held: map[budget.Tenant]int64{last("a", "1"): 20, last("b", ""): 10}, of: last("c", "1"), to: 1},
		"others have more":                    {held: map[budget.Tenant]int64{last("a", "1"): 20, last("b", ""): 10}, of: tenant("c", ""), to: 60, grants: true},
		"it may never have so much":           {of: last("a", "1"), to: 31, refused: true},
		"all is held":                         {held: map[budget.Tenant]int64{tenant("a", ""): 60, tenant("b", ""): 40}, of: tenant("c", "1"), to: 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := budget.New(limits)
			for of, units := range tc.held {
				if !grown(b.Claim(of, units), units) {
					t.Fatalf("%v doesn't get %d", of, units)
				}
			}
			c := b.Claim(tc.of, 0)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			err := c.Grow(ctx, tc.to)
			if (err == nil) != tc.grants || errors.Is(err, budget.ErrTooLarge) != tc.refused {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A cluster has one limit, whoever comes first and last.
func TestLastIsNoSecondShare(t *testing.T) {
	b := budget.New(budget.Limits{All: 100, Namespace: 50, Cluster: 10})
	if !b.Claim(tenant("a", "1"), 6).Try(6) || b.Claim(last("a", "1"), 5).Try(5) || !b.Claim(last("a", "1"), 4).Try(4) {
		t.Error("a cluster holds more than its limit, or less")
	}
}

// However many namespaces take all that they can, others begin at once.
func TestNamespacesFindRoomToBegin(t *testing.T) {
	limits := budget.Limits{All: 100, Namespace: 60, Reserve: 20, Entry: 5}
	b := budget.New(limits)
	for _, namespace := range []string{"a", "b"} {
		for grown(b.Claim(tenant(namespace, ""), 1), 1) {
			continue
		}
	}
	if full := b.Usage().Claimed; full != 80 {
		t.Errorf("two namespaces have %d of %d", full, limits.All)
	}
	for _, namespace := range []string{"c", "d", "e", "f"} {
		if !grown(b.Claim(tenant(namespace, ""), 20), 5) {
			t.Errorf("namespace %s can't begin: %d of %d are held", namespace, b.Usage().Claimed, limits.All)
		}
	}
	if b.Claim(tenant("h", ""), 1).Try(1) {
		t.Error("there is more than all")
	}
	if err := budget.New(limits).Claim(tenant("", ""), 100).Grow(t.Context(), 100); err != nil {
		t.Errorf("the process itself: %v", err)
	}
	if err := budget.New(budget.Limits{All: 100, Reserve: 20, Entry: 5}).Claim(tenant("a", ""), 0).Grow(t.Context(), 81); !errors.Is(err, budget.ErrTooLarge) {
		t.Errorf("more than a namespace may ever have: %v", err)
	}
}

// TestTurns sees who gets what others give back.
func TestTurns(t *testing.T) {
	for name, tc := range map[string]struct {
		held    map[budget.Tenant]int64
		waiting []budget.Tenant
		first   int
	}{
		"by arrival":                      {waiting: []budget.Tenant{tenant("a", "1"), tenant("a", "2")}, first: 0},
		"by the namespace that has least": {held: map[budget.Tenant]int64{tenant("a", "3"): 10}, waiting: []budget.Tenant{tenant("a", "1"), tenant("b", "1")}, first: 1},
		"by its cluster that has least":   {held: map[budget.Tenant]int64{tenant("a", "1"): 10}, waiting: []budget.Tenant{tenant("a", "1"), tenant("a", "2")}, first: 1},
		"by who comes last":               {held: map[budget.Tenant]int64{tenant("a", "1"): 10}, waiting: []budget.Tenant{last("b", "1"), tenant("a", "1")}, first: 1},
		"by the namespace before the cluster": {
			held:    map[budget.Tenant]int64{tenant("a", "3"): 20, tenant("b", "1"): 10},
			waiting: []budget.Tenant{tenant("a", "1"), tenant("b", "1")}, first: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := budget.New(budget.Limits{All: 100})
				var held int64
				for of, units := range tc.held {
					held += units
					_ = b.Claim(of, units).Grow(t.Context(), units)
				}
				rest := b.Claim(tenant("z", ""), 100-held)
				if err := rest.Grow(t.Context(), 100-held); err != nil {
					t.Fatal(err)
				}
				granted := make(chan int, len(tc.waiting))
				for i, of := range tc.waiting {
					go func() {
						if b.Claim(of, 5).Grow(t.Context(), 5) == nil {
							granted <- i
						}
					}()
					synctest.Wait()
				}
				rest.Shrink(100 - held - 5)
				synctest.Wait()
				if len(granted) != 1 {
					t.Fatalf("%d are granted, want 1", len(granted))
				}
				if i := <-granted; i != tc.first {
					t.Errorf("%v is first, want %v", tc.waiting[i], tc.waiting[tc.first])
				}
				rest.End()
			})
		})
	}
}

// TestClaimsEnd has claims grow in steps, with more in all than the limits allow. Each of them gets all that it needs.
func TestClaimsEnd(t *testing.T) {
	for seed := range uint64(300) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 1))
				limits := budget.Limits{All: 80 + random.Int64N(80), Namespace: 40 + random.Int64N(40), Cluster: 20 + random.Int64N(20), Reserve: random.Int64N(30), Entry: random.Int64N(10)}
				b := budget.New(limits)
				counts := &counting{limits: limits, namespaces: map[string]int64{}, tenants: map[budget.Tenant]int64{}}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				var all sync.WaitGroup
				for range 40 {
					of := tenant(string(rune('a'+random.IntN(4))), "")
					most := min(1+random.Int64N(limits.Namespace), limits.All-limits.Reserve)
					if random.IntN(3) > 0 {
						of.Cluster = string(rune('a' + random.IntN(3)))
						most = 1 + random.Int64N(limits.Cluster)
					}
					steps, stops := random.Int64N(9)+1, false
					delay := time.Duration(random.IntN(50)) * time.Second
					all.Go(func() {
						time.Sleep(delay)
						c, held := b.Claim(of, most), int64(0)
						defer func() { counts.add(t, of, -held); c.End() }()
						for held < most && !stops {
							to := min(most, held+steps)
							if err := c.Grow(ctx, to); err != nil {
								t.Errorf("%v doesn't get %d of %d: %v", of, to, most, err)
								return
							}
							counts.add(t, of, to-held)
							held, stops = to, random.IntN(10) == 0
							time.Sleep(time.Second)
						}
					})
				}
				all.Wait()
				if u := b.Usage(); u != (budget.Usage{}) {
					t.Errorf("at the end there is %+v", u)
				}
			})
		})
	}
}

// counting sees that no limit is exceeded.
type counting struct {
	limits     budget.Limits
	mu         sync.Mutex
	all        int64
	namespaces map[string]int64
	tenants    map[budget.Tenant]int64
}

func (c *counting) add(t *testing.T, of budget.Tenant, units int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all += units
	c.namespaces[of.Namespace] += units
	c.tenants[of] += units
	if c.all > c.limits.All || c.namespaces[of.Namespace] > c.limits.Namespace || of.Cluster != "" && c.tenants[of] > c.limits.Cluster {
		t.Errorf("%v has %d, its namespace %d, and all %d, of %+v", of, c.tenants[of], c.namespaces[of.Namespace], c.all, c.limits)
	}
}

// TestWaitEnds sees that a claim that waits no more leaves its turn to others.
func TestWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(budget.Limits{All: 10})
		first := b.Claim(tenant("a", ""), 6)
		if err := first.Grow(t.Context(), 6); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := b.Claim(tenant("b", ""), 8).Grow(ctx, 8); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the second one ends with %v", err)
		}
		if u := b.Usage(); u.Waiting != 0 || u.Claimed != 6 {
			t.Errorf("there is %+v", u)
		}
		first.End()
		first.End()
		if !grown(b.Claim(tenant("c", ""), 10), 10) {
			t.Error("a third one doesn't get what the first one gave back")
		}
	})
}

// A claim tells that it waits, and one that needn't wait doesn't.
func TestWaitIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, waits := budget.New(budget.Limits{All: 10}), 0
		ctx := budget.WithWait(t.Context(), func() { waits++ })
		first, second := b.Claim(tenant("a", ""), 8), b.Claim(tenant("b", ""), 8)
		if err := first.Grow(ctx, 8); err != nil || waits != 0 {
			t.Fatalf("%v, %d waits", err, waits)
		}
		go func() { _ = second.Grow(ctx, 8) }()
		synctest.Wait()
		if waits != 1 {
			t.Errorf("%d waits are told, want 1", waits)
		}
		first.End()
	})
}

// TestLasting sees that no claim counts on the end of one that lasts.
func TestLasting(t *testing.T) {
	b := budget.New(budget.Limits{All: 10})
	if !grown(b.Lasting(tenant("a", "")), 6) {
		t.Fatal("it isn't granted")
	}
	if grown(b.Claim(tenant("b", ""), 5), 1) {
		t.Error("a claim begins that can't come to its end")
	}
	c := b.Claim(tenant("b", ""), 4)
	if !grown(c, 1) {
		t.Error("a claim that can doesn't begin")
	}
	if grown(b.Lasting(tenant("a", "")), 1) {
		t.Error("one that lasts takes the room that a claim needs for its end")
	}
}

func TestHolding(t *testing.T) {
	b := budget.New(budget.Limits{All: 10})
	ctx, release := budget.Holding(t.Context())
	for _, units := range []int64{2, 3} {
		c := b.Claim(tenant("a", ""), 9)
		if !grown(c, units) {
			t.Fatal("it isn't granted")
		}
		c.Release(ctx)
	}
	if u := b.Usage(); u.Claimed != 5 {
		t.Errorf("%d are held while they are used", u.Claimed)
	}
	release()
	late := b.Claim(tenant("a", ""), 9)
	if !grown(late, 9) {
		t.Fatal("it isn't granted")
	}
	late.Release(ctx)
	if u := b.Usage(); u.Claimed != 0 {
		t.Errorf("%d are held after that", u.Claimed)
	}
	alone := b.Claim(tenant("a", ""), 9)
	if !grown(alone, 9) {
		t.Fatal("it isn't granted")
	}
	alone.Release(t.Context())
	if u := b.Usage(); u.Claimed != 0 {
		t.Errorf("%d are held without a holder", u.Claimed)
	}
}

func TestNoBudget(t *testing.T) {
	var b *budget.Budget
	for _, c := range []*budget.Claim{b.Claim(tenant("a", "1"), 1), b.Lasting(tenant("a", "1"))} {
		if !grown(c, 1<<40) {
			t.Error("it isn't granted")
		}
		c.Shrink(1)
		c.Settle()
		c.Release(t.Context())
		c.End()
	}
	cache := budget.NewCache[string](b, 1000, func(int64) int64 { return 100 })
	cache.Put(tenant("a", ""), "one", 1)
	if kept, found := cache.Get("one"); !found || kept != 1 || b.Usage() != (budget.Usage{}) {
		t.Errorf("the cache has %d, %v", kept, found)
	}
}
