// SPDX-License-Identifier: Apache-2.0

// Package budget bounds the memory that is kept between calls: beyond a limit, who was used longest ago drops it.
package budget

import (
	"container/list"
	"sync"
)

// Member keeps something in memory that it can have again at the cost of a request.
type Member interface {
	comparable
	// Size returns about how many bytes are kept.
	Size() int
	// Drop drops them, and reports whether it did: not while they are in use, or not written yet. Inside says that the
	// caller has locked the member.
	Drop(inside bool) bool
}

// Budget knows what its members keep. Key: the member. Bound: the limit. Losing it loses nothing, as members are noted
// with each use. Each member's size is as it was when it was noted.
type Budget[M Member] struct {
	limit int

	mu    sync.Mutex
	total int
	order *list.List // of *share[M], used last first
	at    map[M]*list.Element
}

type share[M Member] struct {
	member M
	size   int
}

// New returns a budget of so many bytes.
func New[M Member](limit int) *Budget[M] {
	return &Budget[M]{limit: limit, order: list.New(), at: map[M]*list.Element{}}
}

// Note takes in what a member keeps, which the caller has locked, and has members drop what is too much.
func (b *Budget[M]) Note(member M) {
	b.Forget(member)
	size := member.Size()
	if size == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.total += size
	b.at[member] = b.order.PushFront(&share[M]{member, size})
	for e := b.order.Back(); e != nil && b.total > b.limit; {
		previous := e.Prev()
		if oldest := e.Value.(*share[M]).member; oldest.Drop(oldest == member) {
			b.remove(e)
		}
		e = previous
	}
}

// Forget takes a member out.
func (b *Budget[M]) Forget(member M) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, ok := b.at[member]; ok {
		b.remove(e)
	}
}

func (b *Budget[M]) remove(e *list.Element) {
	removed := b.order.Remove(e).(*share[M])
	b.total -= removed.size
	delete(b.at, removed.member)
}
