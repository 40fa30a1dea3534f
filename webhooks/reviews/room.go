// SPDX-License-Identifier: Apache-2.0

package reviews

import (
	"cmp"
	"net/netip"
	"sync"
	"time"
)

// room is what clients may hold together. Nobody waits for it: where it is full, something of the client that holds most is
// ended, and of that client's what has come slowest. So whoever holds little gets in, however many connections another
// one holds, and clients behind the address of a proxy may hold everything while nobody else wants any.
type room struct {
	mu       sync.Mutex
	free     int64
	byClient map[string]int64
	shares   map[*share]struct{}
}

func newRoom(size int64) *room {
	return &room{free: size, byClient: map[string]int64{}, shares: map[*share]struct{}{}}
}

// share is what one connection, or one request, holds of a room.
type share struct {
	room   *room
	client string
	held   int64
	since  time.Time
	took   time.Duration // once all has come
	end    func()        // nil: nothing may end it
}

// enter returns a share that holds nothing yet. The function ends what it is for, and must not wait.
func (r *room) enter(client string, end func()) *share {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &share{room: r, client: client, since: time.Now(), end: end}
	r.shares[s] = struct{}{}
	return s
}

// take reports whether the share holds so much more now. Others may have been ended for that. With zero it reports whether
// no other one has ended this one.
func (s *share) take(more int64) bool {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	return s.grow(more)
}

// resize takes more, or gives back, for the share to hold so much; see take.
func (s *share) resize(size int64) bool {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	return s.grow(size - s.held)
}

func (s *share) grow(more int64) bool {
	if _, ok := s.room.shares[s]; !ok {
		return false
	}
	s.hold(more)
	for s.room.free < 0 {
		last := s.room.last()
		if last == nil || last == s {
			s.hold(-more)
			return false
		}
		last.end()
		last.drop()
	}
	return true
}

// last returns the share that is to end first, nil if none may.
func (r *room) last() *share {
	now := time.Now()
	var last *share
	for s := range r.shares {
		if s.end == nil || s.held == 0 {
			continue
		}
		if last == nil || cmp.Or(cmp.Compare(r.byClient[last.client], r.byClient[s.client]), cmp.Compare(s.rate(now), last.rate(now))) < 0 {
			last = s
		}
	}
	return last
}

// rate returns how fast the share was taken, per second.
func (s *share) rate(now time.Time) float64 {
	return float64(s.held) / max(cmp.Or(s.took, now.Sub(s.since)), time.Millisecond).Seconds()
}

func (s *share) hold(more int64) {
	s.held += more
	s.room.free -= more
	if s.room.byClient[s.client] += more; s.room.byClient[s.client] == 0 {
		delete(s.room.byClient, s.client)
	}
}

func (s *share) drop() {
	s.hold(-s.held)
	delete(s.room.shares, s)
}

// leave gives back what the share holds.
func (s *share) leave() {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	if _, ok := s.room.shares[s]; ok {
		s.drop()
	}
}

// complete has the time no longer count against the share: all has come.
func (s *share) complete() {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	s.took = max(time.Since(s.since), time.Millisecond)
}

// protect reports whether the share is still there, which nothing ends from now on.
func (s *share) protect() bool {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	_, ok := s.room.shares[s]
	s.end = nil
	return ok
}

// renew has the share count as one that came now, and that the function ends.
func (s *share) renew(end func()) {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	s.since, s.took, s.end = time.Now(), 0, end
}

// clientOf returns whom an address counts as. A host may have all addresses of an IPv6 network of 64 bits.
func clientOf(address string) string {
	parsed, err := netip.ParseAddrPort(address)
	if err != nil {
		return address
	}
	ip := parsed.Addr().Unmap().WithZone("")
	if ip.Is6() {
		return netip.PrefixFrom(ip, 64).Masked().String()
	}
	return ip.String()
}
