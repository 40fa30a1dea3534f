// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// claims say which links name which cluster, where several sources may name the same one. A cluster
// is known by the UID of its namespace kube-system. The source that was named first has it; two
// names within one source are that source's business.
type claims struct {
	mu        sync.Mutex
	claimants map[types.UID]map[*link]struct{}
	claimed   map[*link]types.UID
}

func newClaims() *claims {
	return &claims{claimants: map[types.UID]map[*link]struct{}{}, claimed: map[*link]types.UID{}}
}

// claim notes which cluster a link names, and returns a link of an earlier source that names it, too.
// Those of later sources are told. What the link claimed before is free. An empty UID is nobody's.
func (c *claims) claim(l *link, uid types.UID) (holder *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if before, ok := c.claimed[l]; !ok || before != uid {
		c.release(l)
		c.add(l, uid)
	}
	return c.earlier(l, uid)
}

// holder returns a link of an earlier source that names a cluster, or nil.
func (c *claims) holder(l *link, uid types.UID) *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.earlier(l, uid)
}

// forget frees what a link that ends has claimed.
func (c *claims) forget(l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.release(l)
}

// earlier returns a link of an earlier source that names a cluster. The caller holds the lock.
func (c *claims) earlier(l *link, uid types.UID) *link {
	for other := range c.claimants[uid] {
		if other.from.source < l.from.source {
			return other
		}
	}
	return nil
}

// add notes a claim, and tells the links of later sources. The caller holds the lock.
func (c *claims) add(l *link, uid types.UID) {
	if uid == "" {
		return
	}
	if c.claimants[uid] == nil {
		c.claimants[uid] = map[*link]struct{}{}
	}
	c.claimants[uid][l], c.claimed[l] = struct{}{}, uid
	c.tellLater(l, uid)
}

// release drops the claim of a link, and tells the links of later sources. The caller holds the lock.
func (c *claims) release(l *link) {
	uid := c.claimed[l]
	delete(c.claimed, l)
	delete(c.claimants[uid], l)
	if len(c.claimants[uid]) == 0 {
		delete(c.claimants, uid)
	}
	c.tellLater(l, uid)
}

func (c *claims) tellLater(l *link, uid types.UID) {
	for other := range c.claimants[uid] {
		if other.from.source > l.from.source {
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

// unclaimed drops a new connection whose cluster an earlier source has claimed meanwhile.
func (l *link) unclaimed(o outcome) outcome {
	if o.conn == nil {
		return o
	}
	if holder := l.provider.claims.holder(l, o.conn.uid); holder != nil {
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

// identify returns the UID of the cluster's namespace kube-system, or nothing if the user may
// not read it.
func (p *prober) identify(ctx context.Context, s subject) (types.UID, *Fault) {
	response, err := p.get(ctx, "/api/v1/namespaces/"+metav1.NamespaceSystem, "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json")
	if err != nil {
		return "", s.networkFault(ctx, err, &trace{})
	}
	defer func() { _ = response.Body.Close() }()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusForbidden, http.StatusNotFound:
		return "", nil
	default:
		return "", s.statusFault(response.StatusCode)
	}
	var namespace metav1.PartialObjectMetadata
	if err := json.NewDecoder(response.Body).Decode(&namespace); err != nil || len(namespace.UID) > 64 {
		return "", s.fault(ReasonProbeFailed, "answers, but not as a Kubernetes API server; check the address in %s", s.origin)
	}
	return namespace.UID, nil
}
