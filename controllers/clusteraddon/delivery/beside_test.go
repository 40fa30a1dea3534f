// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cluster-chandler/chandler/controllers/clusteraddon/delivery"
	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/deliver/contained"
)

// calls are the numbers of calls, and when each began and ended.
type calls struct {
	mu           sync.Mutex
	begun, ended map[int]time.Time
	most, now    int
}

// begin notes a call, and returns what notes its end.
func (c *calls) begin(i int) (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun[i] = time.Now()
	c.now++
	c.most = max(c.most, c.now)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ended[i] = time.Now()
		c.now--
	}
}

// each has the calls made, which take as long as it is given for each.
func each(b *delivery.Beside, n int, follows func(int) []int, takes func(int) time.Duration) *calls {
	c := &calls{begun: map[int]time.Time{}, ended: map[int]time.Time{}}
	b.Each(n, follows, func(i int) {
		defer c.begin(i)()
		time.Sleep(takes(i))
	})
	return c
}

func none(int) []int           { return nil }
func second(int) time.Duration { return time.Second }
func chain(i int) (before []int) {
	return slices.DeleteFunc([]int{i - 1}, func(j int) bool { return j < 0 })
}
func took(do func()) time.Duration { begun := time.Now(); do(); return time.Since(begun) }

// TestAddonsBesideEachOther says how long add-ons of a second take.
func TestAddonsBesideEachOther(t *testing.T) {
	for name, of := range map[string]struct {
		n       int
		follows func(int) []int
		takes   time.Duration
	}{
		"none":                                  {0, none, 0},
		"one":                                   {1, none, time.Second},
		"as many as there is room for":          {4, none, time.Second},
		"more":                                  {5, none, 2 * time.Second},
		"each after the one before":             {4, chain, 4 * time.Second},
		"a chain, and others beside it":         {8, func(i int) []int { return [][]int{nil, {0}, {1}, {2}, nil, nil, nil, nil}[i] }, 4 * time.Second},
		"what can begin doesn't wait for order": {4, func(i int) []int { return [][]int{nil, {0}, {1}, nil}[i] }, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := delivery.NewBeside(10, nil)
				if is := took(func() { each(b, of.n, of.follows, second) }); is != of.takes {
					t.Errorf("they took %s in place of %s", is, of.takes)
				}
			})
		})
	}
}

// TestRoomBesideIsShared has more clusters than there is room for: each of them gets on with one add-on.
func TestRoomBesideIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, all := delivery.NewBeside(20, nil), sync.WaitGroup{}
		clusters := make([]*calls, 10)
		for i := range clusters {
			all.Go(func() { clusters[i] = each(b, 4, none, second) })
		}
		all.Wait()
		for i, c := range clusters {
			if len(c.ended) != 4 || c.most > 4 {
				t.Errorf("cluster %d: %+v", i, c)
			}
		}
		if is := took(func() { each(b, 4, none, second) }); is != time.Second {
			t.Errorf("the room wasn't given back: %s", is)
		}
	})
}

// While memory is waited for, each cluster gets on with one add-on alone.
func TestNoneBesideWithoutMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := budget.New(budget.Limits{All: 1})
		held := memory.Claim(budget.Tenant{}, 1)
		if !held.Try(1) {
			t.Fatal("no memory")
		}
		waits := make(chan error)
		go func() { waits <- memory.Claim(budget.Tenant{}, 1).Grow(t.Context(), 1) }()
		synctest.Wait()
		b := delivery.NewBeside(20, memory)
		if c := each(b, 4, none, second); c.most != 1 || len(c.ended) != 4 {
			t.Errorf("%d at once, %d ended", c.most, len(c.ended))
		}
		held.End()
		if err := <-waits; err != nil {
			t.Error(err)
		}
		if c := each(b, 4, none, second); c.most != 4 {
			t.Errorf("%d at once with memory", c.most)
		}
	})
}

// TestRandomDependencies has each add-on begin once all that it depends on have ended.
func TestRandomDependencies(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 0))
				before := make([][]int, random.IntN(30))
				for i := range before {
					for j := range i {
						if random.IntN(6) == 0 {
							before[i] = append(before[i], j)
						}
					}
				}
				takes := make([]time.Duration, len(before))
				for i := range takes {
					takes[i] = time.Duration(random.IntN(5)) * time.Second
				}
				c := each(delivery.NewBeside(1+random.IntN(40), nil), len(before), func(i int) []int { return before[i] }, func(i int) time.Duration { return takes[i] })
				if len(c.ended) != len(before) || c.most > 4 {
					t.Errorf("%d of %d, %d at once", len(c.ended), len(before), c.most)
				}
				for i := range before {
					for _, j := range before[i] {
						if c.begun[i].Before(c.ended[j]) {
							t.Errorf("%d began before %d ended", i, j)
						}
					}
				}
			})
		})
	}
}

// TestPanicOfOneAddon has the others end before it is told, and the room given back.
func TestPanicOfOneAddon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, ended := delivery.NewBeside(10, nil), make([]bool, 4)
		func() {
			defer func() {
				if there, is := recover().(*contained.Panic); !is || there.Value != "wrong" {
					t.Errorf("it panicked with %v", there)
				}
			}()
			b.Each(4, none, func(i int) {
				if i == 1 {
					panic("wrong")
				}
				time.Sleep(time.Second)
				ended[i] = true
			})
		}()
		if !slices.Equal(ended, []bool{true, false, true, true}) {
			t.Errorf("ended: %v", ended)
		}
		if is := took(func() { each(b, 4, none, second) }); is != time.Second {
			t.Errorf("the room wasn't given back: %s", is)
		}
	})
}
