// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// claims say which link names which cluster, where several sources may name the same one. A cluster
// is known by the UID of its namespace kube-system. The source that was named first has it; two
// names within one source are that source's business.
type claims struct {
	mu      sync.Mutex
	claimed map[*link]types.UID
}

// claim notes which cluster a link names, and returns a link of an earlier source that names it, too.
// Links of later sources are told of the claim, and that what the link claimed before is free. An empty
// UID is nobody's.
func (c *claims) claim(l *link, uid types.UID) (holder *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if before := c.claimed[l]; before != uid {
		delete(c.claimed, l)
		c.tellLater(l, before)
		if uid != "" {
			c.claimed[l] = uid
			c.tellLater(l, uid)
		}
	}
	return c.earlier(l, uid)
}

// holder returns a link of an earlier source that names a cluster, or nil.
func (c *claims) holder(l *link, uid types.UID) *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.earlier(l, uid)
}

// earlier returns a link of an earlier source that names a cluster. The caller holds the lock.
func (c *claims) earlier(l *link, uid types.UID) *link {
	for other, claimed := range c.claimed {
		if claimed == uid && other.from.source < l.from.source {
			return other
		}
	}
	return nil
}

// tellLater tells the links of later sources that name a cluster. The caller holds the lock.
func (c *claims) tellLater(l *link, uid types.UID) {
	for other, claimed := range c.claimed {
		if claimed == uid && other.from.source > l.from.source {
			signal(other.claimed)
		}
	}
}

// duplicate says which other name a cluster has.
func (s subject) duplicate(holder *link) *Fault {
	holder.mu.Lock()
	origin := holder.member.Origin
	holder.mu.Unlock()
	return s.fault(ReasonDuplicateCluster, "is the cluster %s of %s already, whose source comes first; drop one of them, or drop %s", holder.name, origin, s.origin)
}

// claim notes which cluster a new connection leads to. It drops the connection if an earlier source
// names that cluster, too.
func (l *link) claim(o outcome) outcome {
	if o.conn == nil {
		return o
	}
	if holder := l.provider.claims.claim(l, o.conn.uid); holder != nil {
		o.conn.close()
		o.conn, o.fault = nil, l.subject(o.kubeconfig).duplicate(holder)
	}
	return o
}

// reclaim gives up a connection to a cluster that an earlier source has, and tries again once it
// has it no more.
func (l *link) reclaim(now time.Time) orders {
	if l.conn == nil {
		l.machine.freed(now)
		return orders{}
	}
	if holder := l.provider.claims.holder(l, l.conn.uid); holder != nil {
		return l.machine.broken(now, l.subject(l.inUse).duplicate(holder))
	}
	return orders{}
}
