// SPDX-License-Identifier: Apache-2.0

package fleetwatch

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/observe"
)

const (
	// lookPause is how long after a look at an add-on's objects the next one may come.
	lookPause = 10 * time.Second
	// changesGathered is how long changes are gathered before the controller hears of them.
	changesGathered = 500 * time.Millisecond
)

// changes are those of an add-on's objects that are evaluated, since they were taken last. Losing them has all objects
// looked at once.
type changes struct {
	objects map[deliver.ObjectKey]bool
	next    time.Time // when they may be taken again
	told    time.Time // when the controller last heard of them
	waits   bool      // until somebody is
}

// noteChange notes that an object has changed in some way, if it is evaluated. The caller has the lock.
func (c *clusterObjects) noteChange(kind schema.GroupKind, name types.NamespacedName, release deliver.Release) {
	f := c.releases[release]
	if f == nil || f.Evaluates == nil || !f.Evaluates(kind) {
		return
	}
	if f.changes == nil {
		f.changes = &changes{objects: map[deliver.ObjectKey]bool{}}
	}
	f.changes.objects[deliver.ObjectKey{Group: kind.Group, Kind: kind.Kind, Namespace: name.Namespace, Name: name.Name}] = true
	c.tellLater(release, f.changes)
}

// tellLater tells of changes once they may be taken. The caller has the lock.
func (c *clusterObjects) tellLater(release deliver.Release, is *changes) {
	if is.waits || len(is.objects) == 0 {
		return
	}
	is.waits = true
	now := c.clock.Now()
	c.clock.AfterFunc(max(changesGathered, is.next.Sub(now), is.told.Add(lookPause).Sub(now)), func() {
		c.mu.Lock()
		is.waits = false
		f := c.releases[release]
		tell := c.conn.Context().Err() == nil && f != nil && f.changes == is && len(is.objects) > 0
		if tell && c.clock.Now().Before(is.next) { // they were taken since, and changed again
			tell = false
			c.tellLater(release, is)
		} else {
			is.told = c.clock.Now()
		}
		c.mu.Unlock()
		if tell {
			c.notify()
		}
	})
}

// Changed takes the objects of an add-on that have changed since the last call, none if that was a moment ago. listed
// says that all kinds have been listed, or can't be.
func (w *Objects) Changed(conn *fleet.Connection, release deliver.Release) (objects []deliver.ObjectKey, listed bool) {
	w.with(conn, release, func(c *clusterObjects, f *watchedAddon) {
		listed = !f.Busy
		for kind := range f.wanted {
			k := c.kinds[kind]
			listed = listed && (k == nil || k.objects != nil || k.err != nil)
		}
		is := f.changes
		if is == nil || c.clock.Now().Before(is.next) {
			return
		}
		objects = slices.SortedFunc(maps.Keys(is.objects), byName[deliver.ObjectKey])
		clear(is.objects)
		is.next = c.clock.Now().Add(lookPause)
	})
	return objects, listed
}

// Evaluated drops the changes of objects that were evaluated just now at these resourceVersions. Other changes are told of later.
func (w *Objects) Evaluated(conn *fleet.Connection, release deliver.Release, found map[deliver.ObjectKey]observe.Status) {
	w.withChanges(conn, release, func(c *clusterObjects, is *changes) {
		maps.DeleteFunc(is.objects, func(key deliver.ObjectKey, _ bool) bool {
			k := c.kinds[kindOf(key)]
			return k != nil && found[key].Version != "" && k.objects[objectName(key)].version == versionOf(found[key].Version)
		})
		is.next = c.clock.Now().Add(lookPause)
		c.tellLater(release, is)
	})
}

// HasChanged reports whether an object has changed since the last call of Changed that returned it.
func (w *Objects) HasChanged(conn *fleet.Connection, release deliver.Release, key deliver.ObjectKey) (changed bool) {
	w.withChanges(conn, release, func(_ *clusterObjects, is *changes) { changed = is.objects[key] })
	return changed
}

// LookAgain has objects looked at once more, and none of the add-on's before the pause is over.
func (w *Objects) LookAgain(conn *fleet.Connection, release deliver.Release, pause time.Duration, objects ...deliver.ObjectKey) {
	w.withChanges(conn, release, func(c *clusterObjects, is *changes) {
		is.next = c.clock.Now().Add(pause)
		for _, key := range objects {
			is.objects[key] = true
		}
		c.tellLater(release, is)
	})
}

// withChanges calls do under the lock if an object of the add-on has changed since it is watched.
func (w *Objects) withChanges(conn *fleet.Connection, release deliver.Release, do func(*clusterObjects, *changes)) {
	w.with(conn, release, func(c *clusterObjects, f *watchedAddon) {
		if f.changes != nil {
			do(c, f.changes)
		}
	})
}
