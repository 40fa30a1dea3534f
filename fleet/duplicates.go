// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/cluster-chandler/chandler/fleet/internal/transport"
)

// claims say which link names which cluster, where several sources may name the same one. A cluster
// is known by the UID of its namespace kube-system. The source that was named first has it, as soon as nobody else
// uses it any more. Two names within one source are that source's business.
//
// Key: the link, and the UID of its cluster.
// Bound: the links that there are.
// Lost with it: each connection claims its cluster again.
type claims struct {
	mu      sync.Mutex
	claimed map[*link]types.UID
	used    map[*Connection]*link // the connections that others have, or are about to get
}

// take notes which cluster a new connection leads to, and that it is used. Instead it returns a link that keeps the
// connection from being used: an earlier source names the cluster, too, or a later one hasn't given it up yet. Links of
// later sources are told of the claim, and that what the link claimed before is free. An empty UID is nobody's.
func (c *claims) take(l *link, conn *Connection) (holder *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.claim(l, conn.uid)
	if conn.uid == "" {
		return nil
	}
	if holder = c.earlier(l, conn.uid); holder != nil {
		return holder
	}
	for other, by := range c.used {
		if other.uid == conn.uid && by.from.place != l.from.place {
			return by
		}
	}
	c.used[conn] = l
	return nil
}

// claim notes which cluster a link names. The caller holds the lock.
func (c *claims) claim(l *link, uid types.UID) {
	before := c.claimed[l]
	if before == uid {
		return
	}
	delete(c.claimed, l)
	c.tell(before, l.from.place)
	if uid != "" {
		c.claimed[l] = uid
		c.tell(uid, l.from.place)
	}
}

// abandon notes that a link names no cluster any more.
func (c *claims) abandon(l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.claim(l, "")
}

// release notes that a connection isn't used any more, and tells whoever waits for its cluster.
func (c *claims) release(conn *Connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, used := c.used[conn]; used {
		delete(c.used, conn)
		c.tell(conn.uid, -1)
	}
}

// earlier returns a link of an earlier source that names a cluster. The caller holds the lock.
func (c *claims) earlier(l *link, uid types.UID) *link {
	for other, claimed := range c.claimed {
		if claimed == uid && other.from.place < l.from.place {
			return other
		}
	}
	return nil
}

// tell wakes the links that name a cluster and are of sources after a place. The caller holds the lock.
func (c *claims) tell(uid types.UID, after int) {
	for other, claimed := range c.claimed {
		if claimed == uid && other.from.place > after {
			signal(other.claimed)
		}
	}
}

// duplicate says which other name a cluster has.
func (l *link) duplicate(s transport.Subject, holder *link) *transport.Fault {
	holder.mu.Lock()
	origin := holder.member.Origin
	holder.mu.Unlock()
	if holder.from.place > l.from.place {
		return s.Fault(ReasonDuplicateCluster, "is the cluster %s of %s, too, which is about to give it up", holder.name, origin)
	}
	return s.Fault(ReasonDuplicateCluster, "is the cluster %s of %s already, whose source comes first; drop one of them, or drop %s", holder.name, origin, s.Origin)
}

// claim notes which cluster a new connection leads to. It drops the connection if that cluster is another source's, or
// still used under another name.
func (l *link) claim(o attemptResult) attemptResult {
	if o.conn == nil {
		return o
	}
	if holder := l.provider.claims.take(l, o.conn); holder != nil {
		o.conn.close()
		o.conn, o.fault = nil, l.duplicate(l.about(o.kubeconfig), holder)
	}
	return o
}

// reclaim gives up a connection to a cluster that an earlier source has, and tries again once
// it has it no more.
func (l *link) reclaim(now time.Time) {
	if l.conn == nil {
		l.machine.freed(now)
		return
	}
	if holder := l.provider.claims.take(l, l.conn); holder != nil {
		l.machine.broken(now, l.duplicate(l.about(l.inUse), holder))
	}
}
