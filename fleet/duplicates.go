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

// claims say which link has which cluster, where several sources may name the same one. A cluster
// is known by the UID of its namespace kube-system. The source that was named first has it; two
// names within one source are that source's business.
type claims struct {
	mu      sync.Mutex
	holders map[types.UID]map[*link]struct{} // all of one source
	waiting map[types.UID]map[*link]struct{} // of later sources
}

func newClaims() *claims {
	return &claims{holders: map[types.UID]map[*link]struct{}{}, waiting: map[types.UID]map[*link]struct{}{}}
}

// claim gives a cluster to a link, or returns one of an earlier source that has it. Links of
// later sources lose it. What the link claimed before is free. An empty UID is nobody's.
func (c *claims) claim(l *link, uid types.UID) (holder *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.release(l, uid)
	if uid == "" {
		return nil
	}
	for other := range c.holders[uid] {
		if other.from.source < l.from.source {
			add(c.waiting, uid, l)
			return other
		}
		if other.from.source > l.from.source {
			delete(c.holders[uid], other)
			add(c.waiting, uid, other)
			signal(other.claimed)
		}
	}
	remove(c.waiting, uid, l)
	add(c.holders, uid, l)
	return nil
}

// holder returns a link of an earlier source that has a cluster, or nil.
func (c *claims) holder(l *link, uid types.UID) *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	for other := range c.holders[uid] {
		if other.from.source < l.from.source {
			return other
		}
	}
	return nil
}

// forget frees what a link that ends has claimed, and wakes who waits for it.
func (c *claims) forget(l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.release(l, "")
}

// release drops the claims of a link but for one. The caller holds the lock.
func (c *claims) release(l *link, but types.UID) {
	for uid, links := range c.holders {
		if _, held := links[l]; !held || uid == but {
			continue
		}
		remove(c.holders, uid, l)
		if len(c.holders[uid]) > 0 {
			continue
		}
		for other := range c.waiting[uid] {
			signal(other.claimed)
		}
	}
	for uid := range c.waiting {
		if uid != but {
			remove(c.waiting, uid, l)
		}
	}
}

func add(to map[types.UID]map[*link]struct{}, uid types.UID, l *link) {
	if to[uid] == nil {
		to[uid] = map[*link]struct{}{}
	}
	to[uid][l] = struct{}{}
}

func remove(from map[types.UID]map[*link]struct{}, uid types.UID, l *link) {
	delete(from[uid], l)
	if len(from[uid]) == 0 {
		delete(from, uid)
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
	progress := &trace{}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.server+"/api/v1/namespaces/"+metav1.NamespaceSystem, nil)
	if err != nil {
		return "", s.fault(ReasonProbeFailed, "can't be asked for its namespace kube-system")
	}
	request.Header.Set("User-Agent", p.agent)
	request.Header.Set("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json")
	response, err := p.round.RoundTrip(request)
	if err != nil {
		return "", s.networkFault(ctx, err, progress)
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
