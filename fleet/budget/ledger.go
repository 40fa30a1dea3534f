// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"cmp"
	"slices"
)

// ledger is the claims that come to their end, with numbers in place of names. While memory is short, each byte that is given back
// has it looked through for all that wait.
type ledger struct {
	limits  Limits
	numbers map[Tenant]int // of tenants, and of namespaces, which have Last set
	held    []int64        // by number
	all     balance        // what isn't by number
	ends    []end          // by needs

	after []int64 // held once claims have ended, see canEnd
	rest  []end
}

// end is what a claim gives back at its end, and what it may need until then.
type end struct {
	claim            *Claim
	namespace, owner int // numbers
	holds, needs     int64
}

func newLedger(limits Limits, held holdings, ending map[*Claim]struct{}) *ledger {
	l := &ledger{limits: limits, numbers: map[Tenant]int{}, all: balance{all: held.all, last: held.last}}
	for c := range ending {
		l.ends = append(l.ends, l.end(held, c, c.held))
	}
	slices.SortFunc(l.ends, func(a, b end) int { return cmp.Compare(a.needs, b.needs) })
	return l
}

// end returns a claim that holds so many units.
func (l *ledger) end(held holdings, c *Claim, holds int64) end {
	now := held.of(c.of)
	return end{c, l.number(Tenant{Namespace: c.of.Namespace, Last: true}, now.namespace), l.number(c.of.owner(), now.tenant), holds, c.most - holds}
}

func (l *ledger) number(of Tenant, held int64) int {
	n, known := l.numbers[of]
	if !known {
		n = len(l.held)
		l.numbers[of], l.held = n, append(l.held, held)
	}
	return n
}

// canEnd reports whether all claims can come to hold the most that they may, one after the other, after a wish is granted. That
// is the banker's algorithm (E. W. Dijkstra, EWD 623), with units of one kind and limits on three levels.
func (l *ledger) canEnd(held holdings, w *wish) bool {
	granted := l.end(held, w.claim, w.to)
	l.after = append(l.after[:0], l.held...)
	all := l.all
	l.add(&all, granted, w.to-w.claim.held)
	l.rest = append(l.rest[:0], l.ends...)
	if w.claim.held > 0 {
		l.rest = slices.DeleteFunc(l.rest, func(e end) bool { return e.claim == w.claim })
	}
	if !w.claim.lasts {
		l.rest = append(l.rest, granted)
	}
	for len(l.rest) > 0 {
		before := len(l.rest)
		l.rest = slices.DeleteFunc(l.rest, func(e end) bool {
			now := balance{all.all, all.last, l.after[e.namespace], l.after[e.owner]}
			if !l.limits.allow(now, e.claim.of, e.needs) {
				return false
			}
			l.add(&all, e, -e.holds)
			return true
		})
		if len(l.rest) == before {
			return false
		}
	}
	return true
}

func (l *ledger) add(all *balance, e end, units int64) {
	all.all += units
	if e.claim.of.Last {
		all.last += units
	}
	l.after[e.namespace] += units
	l.after[e.owner] += units
}
