// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"container/list"
	"sync"
)

// maxKept bounds what all sessions keep of objects and records, in bytes, as [session.size] estimates it.
const maxKept = 32 << 20

// kept are the sessions that keep objects and records, the one that was used last in front. Beyond the limit the
// others lose theirs: the next call reads them again from the record. Each session's size is as it was after its last
// call.
type kept struct {
	limit int

	mu    sync.Mutex
	total int
	order *list.List // of *keeping
	at    map[*session]*list.Element
}

type keeping struct {
	session *session
	size    int
}

func newKept(limit int) *kept {
	return &kept{limit: limit, order: list.New(), at: map[*session]*list.Element{}}
}

// note takes in what a session keeps, which the caller has locked, and lets sessions drop what is too much.
func (k *kept) note(s *session) {
	k.forget(s)
	size := s.size()
	if size == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.total += size
	k.at[s] = k.order.PushFront(&keeping{s, size})
	for e := k.order.Back(); e != nil && k.total > k.limit; {
		next := e.Prev()
		if drops(e.Value.(*keeping).session, s) {
			k.remove(e)
		}
		e = next
	}
}

// drops has a session drop what it keeps, and reports whether it did: not while it is in use, or has what isn't
// written yet.
func drops(s, locked *session) bool {
	if s != locked {
		if !s.mu.TryLock() {
			return false
		}
		defer s.mu.Unlock()
	}
	if s.hookRuns {
		return false
	}
	s.drop()
	return true
}

func (k *kept) forget(s *session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e, ok := k.at[s]; ok {
		k.remove(e)
	}
}

func (k *kept) remove(e *list.Element) {
	each := k.order.Remove(e).(*keeping)
	k.total -= each.size
	delete(k.at, each.session)
}
