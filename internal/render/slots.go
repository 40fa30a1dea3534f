// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"slices"
	"sync"
)

type tenantKey struct{}

// tenant is for whom something is rendered.
type tenant struct{ namespace, cluster string }

// WithTenant says for which cluster of which namespace renderings with the context are.
// They share the workers fairly with those for others.
func WithTenant(ctx context.Context, namespace, cluster string) context.Context {
	return context.WithValue(ctx, tenantKey{}, tenant{namespace, cluster})
}

// slots are the renderings that may run at the same time. While others wait, one cluster
// has at most a quarter of them, and one namespace half, but each at least one.
type slots struct {
	mu          sync.Mutex
	free, all   int
	byNamespace map[string]int
	byCluster   map[tenant]int
	waiting     []*waiting // the first has waited longest
}

type waiting struct {
	tenant
	granted chan struct{}
}

func newSlots(n int) *slots {
	return &slots{free: n, all: n, byNamespace: map[string]int{}, byCluster: map[tenant]int{}}
}

// acquire waits for a slot, and returns what gives it back. It fails with the context.
func (s *slots) acquire(ctx context.Context, closing <-chan struct{}) (release func(), err error) {
	of, _ := ctx.Value(tenantKey{}).(tenant)
	w := &waiting{tenant: of, granted: make(chan struct{})}
	s.mu.Lock()
	s.waiting = append(s.waiting, w)
	s.grant()
	s.mu.Unlock()
	select {
	case <-w.granted:
		return func() { s.release(of) }, nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-closing:
		err = ErrClosed
	}
	s.mu.Lock()
	at := slices.Index(s.waiting, w)
	if at >= 0 {
		s.waiting = slices.Delete(s.waiting, at, at+1)
	}
	s.mu.Unlock()
	if at < 0 { // it was granted in the same moment
		s.release(of)
	}
	return nil, err
}

func (s *slots) release(of tenant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free++
	count(s.byNamespace, of.namespace, -1)
	count(s.byCluster, of, -1)
	s.grant()
}

// grant gives the free slots away: to the first that is within its share, or else to the first.
func (s *slots) grant() {
	for s.free > 0 && len(s.waiting) > 0 {
		at := max(0, slices.IndexFunc(s.waiting, s.withinShare))
		w := s.waiting[at]
		s.waiting = slices.Delete(s.waiting, at, at+1)
		s.free--
		count(s.byNamespace, w.namespace, 1)
		count(s.byCluster, w.tenant, 1)
		close(w.granted)
	}
}

func (s *slots) withinShare(w *waiting) bool {
	return s.byCluster[w.tenant] < max(1, s.all/4) && s.byNamespace[w.namespace] < max(1, s.all/2)
}

func count[K comparable](in map[K]int, key K, by int) {
	if in[key] += by; in[key] == 0 {
		delete(in, key)
	}
}
