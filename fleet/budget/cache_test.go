// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/fleet/budget"
)

// entryCost is what a cache counts for each entry besides its value.
const entryCost = 64

func cacheOf(b *budget.Budget, capacity int64) *budget.Cache[string, int64] {
	return budget.NewCache[string](b, capacity, func(units int64) int64 { return units - entryCost })
}

func keys(c *budget.Cache[string, int64]) string {
	return strings.Join(slices.Sorted(maps.Keys(c.All())), " ")
}

func TestCacheKeepsWhatWasUsedLast(t *testing.T) {
	c, of := cacheOf(nil, 1000), tenant("a", "")
	c.Put(of, "a", 400)
	c.Put(of, "b", 400)
	c.Get("a")
	c.Put(of, "c", 400) // drops b
	c.Put(of, "huge", 1001)
	if got := keys(c); got != "a c" {
		t.Errorf("it has %s", got)
	}
	c.Put(of, "a", 200)
	c.Put(of, "d", 400)
	if got := keys(c); got != "a c d" {
		t.Errorf("after a value became smaller, it has %s", got)
	}
	c.Put(of, "a", 1001)
	c.Remove("c")
	if got := keys(c); got != "d" {
		t.Errorf("after a value that doesn't fit, it has %s", got)
	}
	if taken, found := c.Take("d"); !found || taken != 400 || keys(c) != "" {
		t.Errorf("took %d, %v; it has %s", taken, found, keys(c))
	}
}

func TestCacheIsSharedByNamespace(t *testing.T) {
	c := cacheOf(nil, 1000)
	c.Put(tenant("small", ""), "small", 300)
	for _, key := range []string{"1", "2", "3", "4", "5", "6"} {
		c.Put(tenant("large", key), key, 200)
	}
	if got := keys(c); got != "4 5 6 small" {
		t.Errorf("it has %s", got)
	}
}

func TestCacheGivesWayToClaims(t *testing.T) {
	for name, tc := range map[string]struct {
		of    budget.Tenant
		units int64
		keeps string
	}{
		"there is room":                   {tenant("a", ""), 100, "a1 a2 b"},
		"a claim of the namespace":        {tenant("a", ""), 200, "a2 b"},
		"a claim of all of the namespace": {tenant("a", ""), 600, "b"},
		"a claim of another namespace":    {tenant("c", ""), 250, "a2 b"},
		"a claim that wakes none":         {tenant("c", ""), 601, "a1 a2 b"},
	} {
		t.Run(name, func(t *testing.T) {
			b := budget.New(budget.Limits{All: 1000, Namespace: 600})
			one, other := cacheOf(b, 800), cacheOf(b, 800)
			one.Put(tenant("a", "1"), "a1", 250)
			one.Put(tenant("a", "2"), "a2", 250)
			other.Put(tenant("b", ""), "b", 300)
			grown(b.Claim(tc.of, tc.units), tc.units)
			got := strings.TrimSpace(keys(one) + " " + keys(other))
			if got != tc.keeps {
				t.Errorf("they have %s, want %s", got, tc.keeps)
			}
		})
	}
}

// TestCacheLeavesClaims sees that an entry for which claims leave no room isn't kept, and ends no claim.
func TestCacheLeavesClaims(t *testing.T) {
	b := budget.New(budget.Limits{All: 1000})
	if !grown(b.Claim(tenant("a", ""), 900), 900) {
		t.Fatal("it isn't granted")
	}
	c := cacheOf(b, 800)
	c.Put(tenant("b", ""), "b", 200)
	if u := b.Usage(); keys(c) != "" || u.Claimed != 900 || u.Cached != 0 {
		t.Errorf("it has %s; there is %+v", keys(c), u)
	}
	c.Put(tenant("b", ""), "b", 100)
	if u := b.Usage(); keys(c) != "b" || u.Cached != 100 {
		t.Errorf("it has %s; there is %+v", keys(c), u)
	}
}

// TestCacheEntriesBelongToWhoAskedFirst has two namespaces share an entry. It is dropped for what the first one has besides.
func TestCacheEntriesBelongToWhoAskedFirst(t *testing.T) {
	c := cacheOf(nil, 1000)
	c.Put(tenant("first", ""), "shared", 400)
	c.Put(tenant("second", ""), "own", 300)
	c.Put(tenant("second", ""), "shared", 400)
	c.Put(tenant("first", ""), "more", 400)
	if got := keys(c); got != "more own" {
		t.Errorf("it has %s", got)
	}
}
