// SPDX-License-Identifier: Apache-2.0

// Package shares divides what there is little of, such as workers or memory, among tenants.
package shares

import (
	"slices"
	"sync"

	"github.com/cluster-chandler/chandler/fleet/budget"
)

// Tenant is for whom something is done.
type Tenant = budget.Tenant

// Shares are units that tenants take. While others wait, one cluster has at most a quarter of them,
// and one namespace half, but each at least one.
type Shares struct {
	mu          sync.Mutex
	free, all   int64
	reserved    bool
	spare       int64 // of free, for a namespace that has none
	byNamespace map[string]int64
	byCluster   map[Tenant]int64
	waiting     []*Share // the first has waited longest
}

// New returns shares of so many units. A namespace may have all of them while nobody else waits.
func New(units int64) *Shares {
	return &Shares{free: units, all: units, byNamespace: map[string]int64{}, byCluster: map[Tenant]int64{}}
}

// NewReserved returns shares of which a namespace never has more than half, be it for one cluster or
// several. They are for what is held for long: who comes later can't wait for it.
func NewReserved(units int64) *Shares {
	s := New(units)
	s.reserved = true
	return s
}

// NewWithSpare returns shares with one unit more, which only a namespace can have that has none. So it needn't wait for
// what takes long.
func NewWithSpare(units int64) *Shares {
	s := New(units)
	s.free, s.spare = units+1, 1
	return s
}

// Share is the wish for units, or the right to use them.
type Share struct {
	Tenant
	units   int64
	shares  *Shares
	granted chan struct{}
	ended   bool
}

// Join gets in line for units, at most for all, or for half of those that are reserved. The share has to be released,
// granted or not.
func (s *Shares) Join(of Tenant, units int64) *Share {
	most := s.all
	if s.reserved {
		most = max(1, s.all/2)
	}
	c := &Share{Tenant: of, units: min(units, most), shares: s, granted: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, c)
	s.grant()
	return c
}

// Wanted reports whether anybody waits for units.
func (s *Shares) Wanted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting) > 0
}

// Granted is closed once the units may be used.
func (c *Share) Granted() <-chan struct{} { return c.granted }

// Release gives the units back, or leaves the line.
func (c *Share) Release() {
	s := c.shares
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.ended {
		return
	}
	c.ended = true
	if at := slices.Index(s.waiting, c); at >= 0 {
		s.waiting = slices.Delete(s.waiting, at, at+1)
	} else {
		s.count(c, -c.units)
	}
	s.grant()
}

// grant gives the free units away: to the first that is within its share, or else to the first.
func (s *Shares) grant() {
	for len(s.waiting) > 0 {
		at := slices.IndexFunc(s.waiting, s.withinShare)
		if at < 0 && s.reserved {
			return
		}
		at = max(0, at)
		if s.waiting[at].units > s.freeTo(s.waiting[at]) {
			// A smaller share that came later mustn't always be first, but may have the spare unit.
			if at = slices.IndexFunc(s.waiting, s.deservesSpare); at < 0 {
				return
			}
		}
		c := s.waiting[at]
		s.waiting = slices.Delete(s.waiting, at, at+1)
		s.count(c, c.units)
		close(c.granted)
	}
}

// freeTo returns how many units are free for a tenant that waits.
func (s *Shares) freeTo(c *Share) int64 {
	if s.byNamespace[c.Namespace] == 0 {
		return s.free
	}
	return s.free - s.spare
}

// deservesSpare reports whether a share is of a namespace that has no unit, and can be met.
func (s *Shares) deservesSpare(c *Share) bool {
	return s.spare > 0 && s.byNamespace[c.Namespace] == 0 && c.units <= s.free
}

func (s *Shares) withinShare(c *Share) bool {
	ofCluster := s.all / 4
	if s.reserved {
		ofCluster = s.all / 2
	}
	return s.byCluster[c.Tenant]+c.units <= max(1, ofCluster) && s.byNamespace[c.Namespace]+c.units <= max(1, s.all/2)
}

func (s *Shares) count(c *Share, units int64) {
	s.free -= units
	add(s.byNamespace, c.Namespace, units)
	add(s.byCluster, c.Tenant, units)
}

func add[K comparable](in map[K]int64, key K, units int64) {
	if in[key] += units; in[key] == 0 {
		delete(in, key)
	}
}
