// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"crypto/sha256"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/cluster-chandler/chandler/fleet/internal/transport"
)

// claims say which link names which cluster, where several may name the same one. A cluster is known by the UID of its
// namespace kube-system. The link that [link.precedes] all others has it, as soon as no other one uses it any more.
//
// Key: the link, and the UID of its cluster.
// Bound: the links that there are.
// Lost with it: each connection claims its cluster again.
type claims struct {
	mu      sync.Mutex
	claimed map[*link]types.UID
	used    map[*Connection]*link // the connections that others have, or are about to get
}

// precedes reports whether a link has the cluster that another one names, too: its source comes first, or its object is
// older, or its name comes first.
func (l *link) precedes(o *link) bool {
	switch {
	case l.from.place != o.from.place:
		return l.from.place < o.from.place
	case l.name == o.name || l.created.IsZero() || o.created.IsZero():
		return false // one that is made again waits for its end; two names within a source are mostly that source's business
	}
	return cmp.Or(l.created.Compare(o.created), cmp.Compare(l.name, o.name)) < 0
}

// take notes which cluster a new connection leads to, and that it is used. Instead it returns a link that keeps the
// connection from being used: one that precedes this one names the cluster, too, or another hasn't given it up yet. Links
// that this one precedes are told of the claim, and that the cluster that it claimed before is free. No link has an empty UID.
func (c *claims) take(l *link, conn *Connection) (holder *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.claim(l, conn.uid)
	if holder = l.original(); holder != nil || conn.uid == "" {
		return holder
	}
	if holder = c.earlier(l, conn.uid); holder != nil {
		return holder
	}
	for other, by := range c.used {
		if other.uid == conn.uid && (by.precedes(l) || l.precedes(by)) {
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
	c.tell(before, l)
	if uid != "" {
		c.claimed[l] = uid
		c.tell(uid, l)
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
		c.tell(conn.uid, nil)
	}
}

// earlier returns a link that names a cluster, and precedes another link. The caller holds the lock.
func (c *claims) earlier(l *link, uid types.UID) *link {
	for other, claimed := range c.claimed {
		if claimed == uid && other.precedes(l) {
			return other
		}
	}
	return nil
}

// original returns a link of the same source that has the very same kubeconfig, and precedes this one. It may not be connected
// yet, as after a restart. It is nil if there is none.
func (l *link) original() *link {
	own := l.digest()
	if l.created.IsZero() || own == sha256.Sum256(nil) {
		return nil
	}
	l.provider.mu.RLock()
	defer l.provider.mu.RUnlock()
	for _, o := range l.provider.links {
		if o.from.place == l.from.place && o.precedes(l) && o.digest() == own {
			return o
		}
	}
	return nil
}

// tell wakes the links that name a cluster, and that a link precedes; nil wakes all. The caller holds the lock.
func (c *claims) tell(uid types.UID, by *link) {
	for other, claimed := range c.claimed {
		if claimed == uid && (by == nil || by.precedes(other)) {
			signal(other.claimed)
		}
	}
}

// duplicate says which other name a cluster has.
func (l *link) duplicate(s transport.Subject, holder *link) *transport.Fault {
	holder.mu.Lock()
	origin := holder.member.Origin
	holder.mu.Unlock()
	switch {
	case l.precedes(holder):
		return s.Fault(ReasonDuplicateCluster, "is the cluster %s of %s, too, which is about to give it up", holder.name, origin)
	case l.from.place == holder.from.place:
		return s.Fault(ReasonDuplicateCluster, "is the cluster %s of %s already, which is older; correct that kubeconfig or the one in %s, or delete one of both objects", holder.name, origin, s.Origin)
	}
	return s.Fault(ReasonDuplicateCluster, "is the cluster %s of %s already, whose source comes first; drop one of them, or drop %s", holder.name, origin, s.Origin)
}

// claim notes which cluster a new connection leads to. It drops the connection if that cluster is another link's, or
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

// reclaim gives up a connection to a cluster that another link has, and tries again once that one
// has it no more.
func (l *link) reclaim(now time.Time) {
	if l.conn == nil {
		l.machine.freed(now)
		return
	}
	if holder := l.provider.claims.take(l, l.conn); holder != nil {
		l.machine.broken(now, l.duplicate(l.about(l.inUse), holder))
	}
}
