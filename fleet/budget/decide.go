// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"cmp"
	"maps"
	"slices"
)

// next returns the index of the wish that is to be granted now, -1 if none can be. Of those that fit, and after which each
// claim can still come to its end, it is one of a tenant that doesn't come last, if there is one; among these, of the namespace that
// holds least; among these, of the cluster that holds least; and among these, the first.
func next(limits Limits, held holdings, ending map[*Claim]struct{}, wishes []*wish) int {
	order := make([]int, len(wishes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := wishes[a].claim.of, wishes[b].claim.of
		switch {
		case !x.Last && y.Last:
			return -1
		case x.Last && !y.Last:
			return 1
		}
		return cmp.Or(cmp.Compare(held.namespaces[x.Namespace], held.namespaces[y.Namespace]), cmp.Compare(held.tenants[x.owner()], held.tenants[y.owner()]))
	})
	for _, i := range order {
		if w := wishes[i]; limits.allow(held, w.claim.of, w.to-w.claim.held) && canEnd(limits, held, ending, w) {
			return i
		}
	}
	return -1
}

// canEnd reports whether all claims can come to hold the most that they may, one after the other, after a wish is granted. That
// is the banker's algorithm (E. W. Dijkstra, EWD 623), with units of one kind and limits on three levels.
func canEnd(limits Limits, held holdings, ending map[*Claim]struct{}, w *wish) bool {
	grows := w.to - w.claim.held
	held.add(w.claim.of, grows)
	defer held.add(w.claim.of, -grows)
	rest := make([]end, 0, len(ending)+1)
	if !w.claim.lasts {
		rest = append(rest, end{w.claim.of, w.to, w.claim.most - w.to})
	}
	for c := range ending {
		if c != w.claim {
			rest = append(rest, end{c.of, c.held, c.most - c.held})
		}
	}
	waits := func(e end) bool { return !limits.allow(held, e.of, e.needs) }
	if !slices.ContainsFunc(rest, waits) { // as mostly: then no order has to be found
		return true
	}
	after := held.clone()
	for len(rest) > 0 {
		before := len(rest)
		rest = slices.DeleteFunc(rest, func(e end) bool {
			if !limits.allow(after, e.of, e.needs) {
				return false
			}
			after.add(e.of, -e.holds)
			return true
		})
		if len(rest) == before {
			return false
		}
	}
	return true
}

// end is what a claim gives back at its end, and what it may need until then.
type end struct {
	of           Tenant
	holds, needs int64
}

// entries is how many namespaces can begin while others have all else.
const entries = 4

// exceeded returns which limit is exceeded if a tenant holds so many units more, in words; "" if none is.
func (l Limits) exceeded(held holdings, of Tenant, more int64) (level string, limit int64) {
	switch {
	case of.Last && l.Last > 0 && held.last+more > l.Last:
		return "all that comes last", l.Last
	case of.Cluster != "" && l.Cluster > 0 && held.tenants[of.owner()]+more > l.Cluster:
		return "cluster " + of.Namespace + "/" + of.Cluster, l.Cluster
	case of.Namespace != "" && l.Namespace > 0 && held.namespaces[of.Namespace]+more > l.Namespace:
		return "namespace " + of.Namespace, l.Namespace
	case of.Namespace != "" && l.Entry > 0 && more > 0 && held.namespaces[of.Namespace]+more > l.Entry && held.all+more > l.All-entries*l.Entry:
		return "the process", l.All - entries*l.Entry
	case l.All > 0 && held.all+more > l.All:
		return "the process", l.All
	}
	return "", 0
}

// most returns how many of so many units a tenant may hold.
func (l Limits) most(of Tenant, units int64) int64 {
	for {
		level, limit := l.exceeded(holdings{}, of, units)
		if level == "" {
			return units
		}
		units = limit
	}
}

// allow reports whether a tenant may hold so many units more.
func (l Limits) allow(held holdings, of Tenant, more int64) bool {
	level, _ := l.exceeded(held, of, more)
	return level == ""
}

// holdings are how many units are held: in all, by tenants that come last, by namespace, and by tenant.
type holdings struct {
	all, last  int64
	namespaces map[string]int64
	tenants    map[Tenant]int64
}

func newHoldings() holdings {
	return holdings{namespaces: map[string]int64{}, tenants: map[Tenant]int64{}}
}

func (h holdings) clone() holdings {
	return holdings{h.all, h.last, maps.Clone(h.namespaces), maps.Clone(h.tenants)}
}

func (h *holdings) add(of Tenant, units int64) {
	h.all += units
	if of.Last {
		h.last += units
	}
	addTo(h.namespaces, of.Namespace, units)
	addTo(h.tenants, of.owner(), units)
}

// largest returns the namespace that holds most.
func (h *holdings) largest() (namespace string) {
	var most int64
	for of, units := range h.namespaces {
		if units > most {
			namespace, most = of, units
		}
	}
	return namespace
}

func addTo[K comparable](in map[K]int64, key K, units int64) {
	if in[key] += units; in[key] == 0 {
		delete(in, key)
	}
}
