// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"cmp"
	"container/list"
	"slices"
	"sync"
)

// Cache keeps what was used last, up to a number of units. If it is full, it drops what the namespace that has most of it used
// least recently. Its entries count in a budget, and give way to claims. It is safe for concurrent use.
//
// Key: given by the user.
// Bound: the capacity, and the limits of the budget.
// Lost with it: given by the user.
type Cache[K comparable, V any] struct {
	budget   *Budget
	capacity int64
	cost     func(V) int64

	mu      *sync.Mutex // the budget's, as claims drop entries
	kept    holdings
	recent  map[string]*list.List // of entry[K, V] by namespace, the most recently used first
	entries map[K]*list.Element
}

type entry[K comparable, V any] struct {
	of    Tenant
	key   K
	value V
	cost  int64
}

// entryCost is what an entry counts besides its value: its key, and its place in the cache.
const entryCost = 64

// evictable is a cache that gives way to claims.
type evictable interface {
	// holds returns how many units the cache has of a namespace.
	holds(namespace string) int64
	// drop drops the entry of a namespace that wasn't used for longest.
	drop(namespace string)
}

// NewCache returns a cache of values whose costs sum up to the capacity at most.
func NewCache[K comparable, V any](b *Budget, capacity int64, cost func(V) int64) *Cache[K, V] {
	c := &Cache[K, V]{
		budget: b, capacity: capacity, cost: cost, mu: &sync.Mutex{},
		kept: newHoldings(), recent: map[string]*list.List{}, entries: map[K]*list.Element{},
	}
	if b != nil {
		c.mu = &b.mu
		b.mu.Lock()
		defer b.mu.Unlock()
		b.caches = append(b.caches, c)
	}
	return c
}

// Get returns the value that is kept, which counts as a use.
func (c *Cache[K, V]) Get(key K) (value V, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, found := c.entries[key]
	if !found {
		return value, false
	}
	e := element.Value.(entry[K, V])
	c.recent[e.of.Namespace].MoveToFront(element)
	return e.value, true
}

// Put keeps a value for a tenant. A value for which there is no room isn't kept. One that replaces another stays with the
// other's tenant: of those who share it, who asked first.
func (c *Cache[K, V]) Put(of Tenant, key K, value V) {
	c.Change(of, key, func(kept *V) { *kept = value })
}

// Change changes the value that is kept, a zero one if none is, and returns it. No other change comes between.
func (c *Cache[K, V]) Change(of Tenant, key K, change func(*V)) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	var value V
	if element, found := c.entries[key]; found {
		was := c.remove(element)
		of, value = was.of, was.value
	}
	change(&value)
	if e := (entry[K, V]{of, key, value, c.cost(value) + entryCost}); e.cost <= c.capacity {
		for c.kept.all+e.cost > c.capacity {
			c.drop(c.kept.largest())
		}
		c.add(e)
		c.budget.evict(of.Namespace)
	}
	return value
}

// Take returns the value of a key, and drops it; false if there is none.
func (c *Cache[K, V]) Take(key K) (value V, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, found := c.entries[key]
	if found {
		value = c.remove(element).value
	}
	return value, found
}

// Remove drops the value, if there is one.
func (c *Cache[K, V]) Remove(key K) { c.Take(key) }

// All returns a copy of what is kept.
func (c *Cache[K, V]) All() map[K]V {
	c.mu.Lock()
	defer c.mu.Unlock()
	values := make(map[K]V, len(c.entries))
	for key, element := range c.entries {
		values[key] = element.Value.(entry[K, V]).value
	}
	return values
}

func (c *Cache[K, V]) add(e entry[K, V]) {
	of := c.recent[e.of.Namespace]
	if of == nil {
		of = list.New()
		c.recent[e.of.Namespace] = of
	}
	c.entries[e.key] = of.PushFront(e)
	c.count(e, e.cost)
}

func (c *Cache[K, V]) remove(element *list.Element) entry[K, V] {
	e := element.Value.(entry[K, V])
	delete(c.entries, e.key)
	of := c.recent[e.of.Namespace]
	if of.Remove(element); of.Len() == 0 {
		delete(c.recent, e.of.Namespace)
	}
	c.count(e, -e.cost)
	return e
}

func (c *Cache[K, V]) count(e entry[K, V], cost int64) {
	c.kept.add(e.of, cost)
	if c.budget != nil {
		c.budget.cached.add(e.of, cost)
	}
}

// holds implements evictable.
func (c *Cache[K, V]) holds(namespace string) int64 { return c.kept.namespaces[namespace] }

// drop implements evictable.
func (c *Cache[K, V]) drop(namespace string) { c.remove(c.recent[namespace].Back()) }

// evict has caches drop entries of a namespace while it has more than its limit, and of the namespace that has most of them
// while all have more than theirs.
func (b *Budget) evict(namespace string) {
	if b == nil {
		return
	}
	for limit := b.limits.Namespace; namespace != "" && limit > 0 && b.held.namespaces[namespace]+b.cached.namespaces[namespace] > limit; {
		if !b.drop(namespace) {
			break
		}
	}
	for limit := b.limits.All; limit > 0 && b.held.all+b.cached.all > limit; {
		if !b.drop(b.cached.largest()) {
			break
		}
	}
}

// drop drops an entry of a namespace from the cache that has most of it. It returns false if no cache has any.
func (b *Budget) drop(namespace string) bool {
	if b.cached.namespaces[namespace] == 0 {
		return false
	}
	slices.MaxFunc(b.caches, func(x, y evictable) int { return cmp.Compare(x.holds(namespace), y.holds(namespace)) }).drop(namespace)
	return true
}
