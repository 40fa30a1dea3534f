// SPDX-License-Identifier: Apache-2.0

// Package lru keeps what was used last, up to a total cost.
package lru

import (
	ordered "container/list"
	"sync"
)

// Cache keeps what was used last, up to a total cost. Safe for concurrent use.
type Cache[K comparable, V any] struct {
	capacity int64
	cost     func(V) int64

	mu     sync.Mutex
	used   int64
	recent *ordered.List // of cached[K, V], most recently used first
	items  map[K]*ordered.Element
}

type cached[K comparable, V any] struct {
	key   K
	value V
	cost  int64
}

// New makes a cache for values whose costs sum up to capacity at most.
func New[K comparable, V any](capacity int64, cost func(V) int64) *Cache[K, V] {
	return &Cache[K, V]{capacity: capacity, cost: cost, recent: ordered.New(), items: map[K]*ordered.Element{}}
}

// Get returns the value that was kept, which counts as a use.
func (c *Cache[K, V]) Get(key K) (value V, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, found := c.items[key]
	if !found {
		return value, false
	}
	c.recent.MoveToFront(element)
	return element.Value.(cached[K, V]).value, true
}

// Put keeps the value and drops the least recently used ones to make room. A
// value that costs more than the whole cache isn't kept.
func (c *Cache[K, V]) Put(key K, value V) {
	c.Change(key, func(kept *V) { *kept = value })
}

// Change changes the value that is kept, a zero one if none is, and returns it. No other change comes between.
func (c *Cache[K, V]) Change(key K, change func(*V)) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	var value V
	if element, found := c.items[key]; found {
		value = element.Value.(cached[K, V]).value
		c.drop(element)
	}
	change(&value)
	cost := c.cost(value)
	if cost > c.capacity {
		return value
	}
	for c.used+cost > c.capacity {
		c.drop(c.recent.Back())
	}
	c.items[key] = c.recent.PushFront(cached[K, V]{key, value, cost})
	c.used += cost
	return value
}

// Take returns the value of a key, and drops it; false if there is none.
func (c *Cache[K, V]) Take(key K) (value V, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, found := c.items[key]
	if found {
		value = element.Value.(cached[K, V]).value
		c.drop(element)
	}
	return value, found
}

// Remove drops the value, if there is one.
func (c *Cache[K, V]) Remove(key K) { c.Take(key) }

func (c *Cache[K, V]) drop(element *ordered.Element) {
	dropped := c.recent.Remove(element).(cached[K, V])
	delete(c.items, dropped.key)
	c.used -= dropped.cost
}

// All returns a copy of what is kept.
func (c *Cache[K, V]) All() map[K]V {
	c.mu.Lock()
	defer c.mu.Unlock()
	values := make(map[K]V, len(c.items))
	for key, element := range c.items {
		values[key] = element.Value.(cached[K, V]).value
	}
	return values
}

// One is the cost of each value in a cache that is bounded by their number.
func One[V any](V) int64 { return 1 }

// Strings is the cost of texts: the bytes that they take.
func Strings(texts []string) int64 {
	size := int64(64)
	for _, text := range texts {
		size += int64(len(text)) + 16
	}
	return size
}
