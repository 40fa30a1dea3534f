// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"cmp"
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
	var open *ledger
	for _, i := range order {
		w := wishes[i]
		if !limits.allow(held.of(w.claim.of), w.claim.of, w.to-w.claim.held) {
			continue
		}
		if open == nil {
			open = newLedger(limits, held, ending)
		}
		if open.canEnd(held, w) {
			return i
		}
	}
	return -1
}

// level is one that has a limit.
type level int

const (
	none level = iota
	last
	cluster
	namespace
	process
)

// exceeded returns which limit is exceeded if a tenant holds so many units more than now.
func (l Limits) exceeded(now balance, of Tenant, more int64) (_ level, limit int64) {
	switch {
	case of.Last && l.Last > 0 && now.last+more > l.Last:
		return last, l.Last
	case of.Cluster != "" && l.Cluster > 0 && now.tenant+more > l.Cluster:
		return cluster, l.Cluster
	case of.Namespace != "" && l.Namespace > 0 && now.namespace+more > l.Namespace:
		return namespace, l.Namespace
	case of.Namespace != "" && l.Reserve > 0 && more > 0 && now.namespace+more > l.Entry && now.all+more > l.All-l.Reserve:
		return process, l.All - l.Reserve
	case l.All > 0 && now.all+more > l.All:
		return process, l.All
	}
	return none, 0
}

// words names the level of a tenant.
func (l level) words(of Tenant) string {
	switch l {
	case last:
		return "all that comes last"
	case cluster:
		return "cluster " + of.Namespace + "/" + of.Cluster
	case namespace:
		return "namespace " + of.Namespace
	}
	return "the process"
}

// most returns how many of so many units a tenant may hold.
func (l Limits) most(of Tenant, units int64) int64 {
	for {
		level, limit := l.exceeded(balance{}, of, units)
		if level == none {
			return units
		}
		units = limit
	}
}

// allow reports whether a tenant may hold so many units more.
func (l Limits) allow(now balance, of Tenant, more int64) bool {
	level, _ := l.exceeded(now, of, more)
	return level == none
}

// balance is how many units are held on the levels of a tenant.
type balance struct{ all, last, namespace, tenant int64 }

// holdings are how many units are held: in all, by tenants that come last, by namespace, and by tenant.
type holdings struct {
	all, last  int64
	namespaces map[string]int64
	tenants    map[Tenant]int64
}

func newHoldings() holdings {
	return holdings{namespaces: map[string]int64{}, tenants: map[Tenant]int64{}}
}

// of returns what is held on the levels of a tenant.
func (h *holdings) of(t Tenant) balance {
	return balance{h.all, h.last, h.namespaces[t.Namespace], h.tenants[t.owner()]}
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
