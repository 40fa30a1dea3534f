// SPDX-License-Identifier: Apache-2.0

package fleetwatch

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/repair"
	"github.com/cluster-chandler/chandler/internal/drift"
)

// How long what an add-on has may differ from its record before that counts: the events of the
// manager's own writes come a moment after these.
const (
	quietAfterUpgrade = time.Second
	quietAfterRepair  = 250 * time.Millisecond
)

// Objects watches the objects of add-ons: one watch for each kind that is installed on a
// cluster. It keeps only a hash of the fields of an object that its add-on owns. So changes of the
// object by others cost nothing, unless its health is evaluated. A single comparison shows whether an
// add-on has all the objects that it applied.
//
// Key: the connection, the kind and the object.
// Bound: maxObjects objects of a cluster.
// Lost with it: objects are listed and compared again.
type Objects struct {
	changed func(multicluster.ClusterName)
	clock   clock.WithDelayedExecution
	limit   int // of the objects that are kept of one cluster

	mu       sync.Mutex
	clusters map[*fleet.Connection]*clusterObjects
}

// NewObjects returns a watch that calls changed when objects of a cluster differ from what
// was applied.
func NewObjects(changed func(multicluster.ClusterName)) *Objects {
	return &Objects{changed: changed, clock: clock.RealClock{}, limit: maxObjects, clusters: map[*fleet.Connection]*clusterObjects{}}
}

// Expected is what an add-on has on a cluster if nobody changed it.
type Expected struct {
	// Applied are the sums of its record, as text.
	Applied string
	// Objects is how many objects the record has. No more kinds of it are watched, but one of CRDs
	// that a rollback left.
	Objects int
	// Terms identify what is said about drift: when they change, what was accepted before
	// isn't any more.
	Terms string
	// Evaluates reports whether objects of a kind are evaluated when they change. Nil evaluates none.
	Evaluates func(schema.GroupKind) bool
	// Busy says that the add-on is being changed: nothing is compared until it isn't.
	Busy bool
}

// State compares an add-on's objects with what is expected.
type State struct {
	// Differs says that an object differs, and wasn't accepted as it is.
	Differs bool
	// Unwatched are kinds whose objects aren't known, with the reasons.
	Unwatched map[schema.GroupKind]error
}

// clusterObjects are the objects of the add-ons on one connection.
type clusterObjects struct {
	name   string
	conn   *fleet.Connection
	clock  clock.WithDelayedExecution
	limit  int
	notify func()

	mu       sync.Mutex
	kinds    map[schema.GroupKind]*kindOfObjects
	releases map[deliver.Release]*watchedAddon
	objects  int // that are kept
}

// watchedAddon is an add-on that is watched.
type watchedAddon struct {
	Expected
	wanted    drift.Sums       // with what was accepted
	beyond    schema.GroupKind // is the first of the kinds that are more than the record has objects
	repairing bool
	// known says that nothing has changed since a repair began: the code that repairs
	// knows what differs still, and when to try again.
	known      bool
	quietUntil time.Time // until then differences may be of our own writes
	changes    *changes  // nil before the first one
}

// Watch keeps track of the objects of these add-ons of a cluster, and of no others, as long as the
// connection lasts. It doesn't wait for them.
func (w *Objects) Watch(name multicluster.ClusterName, conn *fleet.Connection, releases map[deliver.Release]Expected) {
	c := w.of(name, conn, len(releases) > 0)
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.releases, func(release deliver.Release, _ *watchedAddon) bool { _, wanted := releases[release]; return !wanted })
	for release, expected := range releases {
		c.expect(release, expected)
	}
	kinds := c.wantedKinds()
	for kind, k := range c.kinds {
		if !kinds[kind] {
			k.stop()
			c.objects -= len(k.objects)
			delete(c.kinds, kind)
		}
	}
	for kind := range kinds {
		if c.kinds[kind] == nil {
			c.start(kind)
		}
	}
}

// expect notes what is expected of an add-on. While it is busy that is what was before: its
// watches go on.
func (c *clusterObjects) expect(release deliver.Release, expected Expected) {
	f := c.releases[release]
	switch {
	case f != nil && expected.Busy:
		f.Busy = true
		return
	case f != nil && f.isSame(expected):
		f.Evaluates = expected.Evaluates
		return
	}
	next := &watchedAddon{Expected: expected}
	next.wanted, next.beyond = expected.sums()
	if f != nil {
		next.repairing, next.changes = f.repairing, f.changes
	}
	c.releases[release] = next
	c.reportAfter(release, next, quietAfterUpgrade)
}

// isSame reports whether the same is expected as before.
func (e Expected) isSame(other Expected) bool {
	return e.Applied == other.Applied && e.Objects == other.Objects && e.Terms == other.Terms && e.Busy == other.Busy
}

// of returns what is known of a connection. It is nil if there is nothing yet, unless one is to
// be made.
func (w *Objects) of(name multicluster.ClusterName, conn *fleet.Connection, makes bool) *clusterObjects {
	w.mu.Lock()
	defer w.mu.Unlock()
	c, known := w.clusters[conn]
	if known || !makes || conn.Context().Err() != nil {
		return c
	}
	c = &clusterObjects{
		name: name.String(), conn: conn, clock: w.clock, limit: w.limit, notify: func() { w.changed(name) },
		kinds: map[schema.GroupKind]*kindOfObjects{}, releases: map[deliver.Release]*watchedAddon{},
	}
	w.clusters[conn] = c
	context.AfterFunc(conn.Context(), func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.clusters, conn)
	})
	return c
}

// with calls do under the lock if the add-on is watched.
func (w *Objects) with(conn *fleet.Connection, release deliver.Release, do func(*clusterObjects, *watchedAddon)) {
	c := w.of("", conn, false)
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.releases[release]; f != nil {
		do(c, f)
	}
}

// State returns how an add-on's objects compare with what is expected.
func (w *Objects) State(conn *fleet.Connection, release deliver.Release) (state State) {
	w.with(conn, release, func(c *clusterObjects, f *watchedAddon) {
		state.Differs = !f.Busy && c.differs(release, f)
		state.Unwatched = map[schema.GroupKind]error{}
		for kind := range f.wanted {
			switch k := c.kinds[kind]; {
			case k == nil:
				state.Unwatched[kind] = errKindsOfCluster
			case k.err != nil:
				state.Unwatched[kind] = k.err
			}
		}
		if !f.beyond.Empty() {
			state.Unwatched[f.beyond] = errKindsOfRecord
		}
	})
	return state
}

// Accept takes these objects of an add-on as they are now, and no others.
func (w *Objects) Accept(conn *fleet.Connection, release deliver.Release, found []repair.Difference) {
	w.with(conn, release, func(_ *clusterObjects, f *watchedAddon) {
		f.wanted, f.beyond = f.sums()
		for _, d := range found {
			kind := kindOf(d.Object)
			if sum, known := f.wanted[kind]; known {
				sum.Remove(objectName(d.Object), d.Applied)
				sum.Add(objectName(d.Object), d.Now)
				f.wanted[kind] = sum
			}
		}
	})
}

// Seen returns a function that returns the fields of an object of an add-on, as they were seen
// last; false if an object's kind isn't watched.
func (w *Objects) Seen(conn *fleet.Connection, release deliver.Release) func(deliver.ObjectKey) (drift.Fields, bool) {
	c := w.of("", conn, false)
	return func(key deliver.ObjectKey) (drift.Fields, bool) {
		if c == nil {
			return 0, false
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		k := c.kinds[kindOf(key)]
		if !k.isKnown() {
			return 0, false
		}
		if o := k.objects[objectName(key)]; o.release == release {
			return o.fields, true
		}
		return 0, true
	}
}

// Repairing says that an add-on is being repaired. Its changes aren't reported until the
// returned function is called, and a moment longer. A difference that is the same as before isn't
// reported then.
func (w *Objects) Repairing(conn *fleet.Connection, release deliver.Release) (done func()) {
	w.with(conn, release, func(_ *clusterObjects, f *watchedAddon) { f.repairing, f.known = true, true })
	return func() {
		w.with(conn, release, func(c *clusterObjects, f *watchedAddon) {
			f.repairing = false
			c.reportAfter(release, f, quietAfterRepair)
		})
	}
}

// reportAfter has differences reported after a while only.
func (c *clusterObjects) reportAfter(release deliver.Release, f *watchedAddon, after time.Duration) {
	f.quietUntil = c.clock.Now().Add(after)
	c.clock.AfterFunc(after, func() {
		c.mu.Lock()
		tell := c.conn.Context().Err() == nil && c.releases[release] == f && c.isNews(release)
		c.mu.Unlock()
		if tell {
			c.notify()
		}
	})
}

// isNews reports whether an add-on has a difference that is to be reported.
func (c *clusterObjects) isNews(release deliver.Release) bool {
	f := c.releases[release]
	return f != nil && !f.repairing && !f.known && !f.Busy && !c.clock.Now().Before(f.quietUntil) && c.differs(release, f)
}

// differs reports whether sums differ, of the kinds that are watched.
func (c *clusterObjects) differs(release deliver.Release, f *watchedAddon) bool {
	for kind, wanted := range f.wanted {
		if k := c.kinds[kind]; k.isKnown() && k.sums[release] != wanted {
			return true
		}
	}
	return false
}

// anyNews reports whether one of the add-ons, which have changed, has a difference that is to be
// reported.
func (c *clusterObjects) anyNews(changed []deliver.Release) bool {
	for _, release := range changed {
		if f := c.releases[release]; f != nil {
			f.known = false
		}
	}
	return slices.ContainsFunc(changed, c.isNews)
}
