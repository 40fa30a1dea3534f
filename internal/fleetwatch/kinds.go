// SPDX-License-Identifier: Apache-2.0

package fleetwatch

import (
	"context"
	"reflect"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/internal/render"
)

var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Kinds watches which kinds come to a cluster, and go, where a chart asked for
// kinds (.Capabilities.APIVersions): the answers are part of the add-on's digest.
// Nothing is kept of the CRDs; that one changed is all that counts.
type Kinds struct {
	changed func(multicluster.ClusterName)
	clock   clock.WithTicker

	mu      sync.Mutex
	watched map[*fleet.Connection]bool
}

// NewKinds returns a watch that calls changed when a cluster has other kinds.
func NewKinds(changed func(multicluster.ClusterName)) *Kinds {
	return &Kinds{changed: changed, clock: clock.RealClock{}, watched: map[*fleet.Connection]bool{}}
}

// Ensure watches the cluster's CRDs as long as the connection lasts, if the facts
// that a rendering used make it necessary.
func (k *Kinds) Ensure(name multicluster.ClusterName, conn *fleet.Connection, used render.FactsUsed) {
	if len(used.Has) == 0 && used.APIVersions == "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.watched[conn] {
		return
	}
	k.watched[conn] = true
	heard := make(chan struct{}, 1)
	go func() {
		contained(conn.Context(), name.String(), func() { k.watch(conn.Context(), conn, heard) })
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.watched, conn)
	}()
	go contained(conn.Context(), name.String(), func() { k.look(conn.Context(), conn, heard, func() { k.changed(name) }) })
}

func (k *Kinds) watch(ctx context.Context, conn *fleet.Connection, heard chan<- struct{}) {
	hear := func() {
		select {
		case heard <- struct{}{}:
		default: // a look is due already
		}
	}
	f := following{
		server: conn, resource: crdResource, clock: k.clock,
		list: func(ctx context.Context, crds metadata.ResourceInterface, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
			o.Limit = 1 // its version alone is of use
			return crds.List(ctx, o)
		},
		// A list follows a gap, in which anything may have happened: the first one, the time since the kinds were discovered.
		listed:  func(*metav1.PartialObjectMetadataList) { hear() },
		changed: func(*metav1.PartialObjectMetadata, bool) { hear() },
	}
	_ = watchRetry.DelayWithReset(k.clock, failureStays).Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		_ = f.run(ctx) // what a broken watch missed is heard of with the next list
		return false, nil
	})
}

// look discovers the kinds when it is time, and calls changed when there are others.
func (k *Kinds) look(ctx context.Context, conn *fleet.Connection, heard <-chan struct{}, changed func()) {
	var at looks
	var known fleet.Facts // none: the first look may be after a change that nobody heard of
	timer := k.clock.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-heard:
			at.heard(k.clock.Now())
		case <-timer.C():
			if next := at.next(); next.IsZero() || k.clock.Now().Before(next) {
				break
			}
			conn.InvalidateFacts()
			facts, err := conn.Facts(ctx)
			news := err == nil && !reflect.DeepEqual(facts, known)
			if at.looked(k.clock.Now(), news); news {
				known = facts
				changed()
			}
		}
		if next := at.next(); !next.IsZero() {
			timer.Reset(max(0, next.Sub(k.clock.Now())))
		}
	}
}

// When to look after a change of a CRD. The API server shows a new group in discovery
// at once, or nearly so. It shows a kind that comes to a group it knows already with
// the aggregator's next round, once a minute.
const (
	soonAfter, lateAfter = 2 * time.Second, 75 * time.Second
	// leastBetween is the least time between two looks. It doubles up to mostBetween
	// with each that shows nothing new, while changes go on.
	leastBetween, mostBetween = 10 * time.Second, 5 * time.Minute
)

// looks say when to look at a cluster's kinds, by the changes that were heard of.
type looks struct {
	soon, late time.Time // zero: not due
	last       time.Time
	between    time.Duration
}

// heard takes in a change.
func (l *looks) heard(now time.Time) {
	if l.soon.IsZero() && l.late.IsZero() {
		l.between = leastBetween // it was quiet
	}
	if l.soon.IsZero() {
		l.soon = now.Add(soonAfter)
	}
	l.late = now.Add(lateAfter)
}

// next returns when to look; zero if nothing is due.
func (l *looks) next() time.Time {
	next := l.soon
	if next.IsZero() || !l.late.IsZero() && l.late.Before(next) {
		next = l.late
	}
	if least := l.last.Add(l.between); !next.IsZero() && next.Before(least) {
		return least
	}
	return next
}

// looked takes in a look, and whether there was something new.
func (l *looks) looked(now time.Time, news bool) {
	l.last, l.soon = now, time.Time{}
	if !now.Before(l.late) {
		l.late = time.Time{}
	}
	if l.between = min(2*l.between, mostBetween); news {
		l.between = leastBetween
	}
}
