// SPDX-License-Identifier: Apache-2.0

package fleetwatch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/drift"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/test/connection"
)

// The add-ons of the tests. Nobody follows the marker.
var (
	web    = deliver.Release{Namespace: "apps", Name: "web"}
	api    = deliver.Release{Namespace: "apps", Name: "api"}
	marker = deliver.Release{Namespace: "apps", Name: "marker"}
)

// stepClock stands still until it is stepped. What is due then is done within the step. Pauses between
// tries are real.
type stepClock struct {
	clock.RealClock
	mu     sync.Mutex
	now    time.Time
	alarms []alarm
}

type alarm struct {
	at   time.Time
	ring func()
}

func (c *stepClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *stepClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.alarms = append(c.alarms, alarm{c.now.Add(d), f})
	return nil
}

func (c *stepClock) After(d time.Duration) <-chan time.Time {
	if d <= 2*retry.Objects.Cap {
		return time.After(d)
	}
	rings := make(chan time.Time, 1)
	c.AfterFunc(d, func() { rings <- time.Time{} })
	return rings
}

// hasAlarmIn reports whether something waits that long, or longer.
func (c *stepClock) hasAlarmIn(d time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.alarms, func(a alarm) bool { return a.at.Sub(c.now) >= d })
}

func (c *stepClock) step(d time.Duration) {
	c.mu.Lock()
	c.now = c.now.Add(d)
	var due []alarm
	c.alarms = slices.DeleteFunc(c.alarms, func(a alarm) bool {
		if isDue := !a.at.After(c.now); isDue {
			due = append(due, a)
			return true
		}
		return false
	})
	c.mu.Unlock()
	for _, a := range due {
		a.ring()
	}
}

// watched are the objects of a server, as they are watched.
type watched struct {
	*Objects
	t      *testing.T
	server *objectServer
	conn   *fleet.Connection
	clock  *stepClock
	told   atomic.Int32
	onTold func() // nil does nothing
	marks  int
}

// watchObjects watches the objects of a server.
func watchObjects(t *testing.T) *watched {
	t.Helper()
	return watchObjectsAt(t, "")
}

// watchObjectsAt watches the objects of a server below a path.
func watchObjectsAt(t *testing.T, below string) *watched {
	t.Helper()
	w := &watched{t: t, server: newObjectServer(), clock: &stepClock{now: time.Unix(1e9, 0)}}
	w.Objects = NewObjects(func(multicluster.ClusterName) {
		if w.told.Add(1); w.onTold != nil {
			w.onTold()
		}
	})
	w.Objects.clock = w.clock
	w.conn = connection.At(t, below, w.server.ServeHTTP)
	return w
}

// install has objects on the server that are of one add-on, and has them watched.
func (w *watched) install(objects ...metav1.PartialObjectMetadata) Expected {
	w.t.Helper()
	for _, o := range objects {
		w.server.put(o)
	}
	e := Expected{Objects: len(objects), Applied: sumsOf(objects...)}
	w.follow(map[deliver.Release]Expected{object.OwnerOf(&objects[0].ObjectMeta): e})
	w.awaitListed(objects...)
	w.clock.step(quietAfterUpgrade)
	w.expectTold(0, "the objects are as expected")
	return e
}

func (w *watched) follow(releases map[deliver.Release]Expected) {
	w.Watch("ns/prod", w.conn, releases)
}

// awaitListed waits until the kinds of objects have been listed.
func (w *watched) awaitListed(objects ...metav1.PartialObjectMetadata) {
	w.t.Helper()
	for _, o := range objects {
		eventually(w.t, o.Kind+" is listed", func() bool {
			_, known := w.seen(o)
			return known
		})
	}
}

// sync waits until everything is known that the server has of these kinds, and was told.
func (w *watched) sync(kinds ...string) {
	w.t.Helper()
	for _, kind := range kinds {
		w.marks++
		mark := shown(kind, marker, "mark", fmt.Sprint("mark", w.marks))
		w.server.put(mark)
		eventually(w.t, "a mark is seen among "+kind, func() bool {
			fields, _ := w.seen(mark)
			return fields == fieldsOf(mark)
		})
	}
}

func (w *watched) seen(o metav1.PartialObjectMetadata) (drift.Fields, bool) {
	return w.Seen(w.conn, object.OwnerOf(&o.ObjectMeta))(keyOf(o))
}

func (w *watched) state() State { return w.State(w.conn, web) }

// expectTold expects that changes have been told a number of times, once all events are known.
func (w *watched) expectTold(times int, why string) {
	w.t.Helper()
	var kinds []string
	for kind, k := range w.kinds() {
		if k.err == nil {
			kinds = append(kinds, kind.Kind)
		}
	}
	w.sync(kinds...)
	if told := int(w.told.Load()); told != times {
		w.t.Fatalf("%s, and it was told %d times, not %d", why, told, times)
	}
}

func (w *watched) expectDiffers(differs bool, why string) {
	w.t.Helper()
	if state := w.state(); state.Differs != differs {
		w.t.Fatalf("%s, and the state is %+v", why, state)
	}
}

// kinds are those that are watched now.
func (w *watched) kinds() map[schema.GroupKind]*kindOfObjects {
	c := w.of("ns/prod", w.conn, false)
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	kinds := map[schema.GroupKind]*kindOfObjects{}
	for kind, k := range c.kinds {
		kinds[kind] = &kindOfObjects{err: k.err}
	}
	return kinds
}

// shown is what an API server shows of an object of which an add-on has set fields.
func shown(kind string, release deliver.Release, name string, fields ...string) metav1.PartialObjectMetadata {
	o := metav1.PartialObjectMetadata{}
	for gvk := range maps.Keys(kindsServed) {
		if gvk.Kind == kind {
			o.SetGroupVersionKind(gvk)
		}
	}
	o.Namespace, o.Name = "apps", name
	o.Labels = map[string]string{addonsv1.AddonLabel: release.Name, addonsv1.AddonNamespaceLabel: release.Namespace}
	o.ManagedFields = []metav1.ManagedFieldsEntry{entryOf(object.FieldManager(release), fields...)}
	return o
}

// entryOf is that of a manager which applied these fields of data.
func entryOf(manager string, fields ...string) metav1.ManagedFieldsEntry {
	var names []string
	for _, field := range fields {
		names = append(names, fmt.Sprintf(`"f:%s":{}`, field))
	}
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:data":{` + strings.Join(names, ",") + `}}`),
	}
}

// with returns a copy of an object that is changed.
func with(o metav1.PartialObjectMetadata, change func(*metav1.PartialObjectMetadata)) metav1.PartialObjectMetadata {
	changed := o.DeepCopy()
	change(changed)
	return *changed
}

func keyOf(o metav1.PartialObjectMetadata) deliver.ObjectKey {
	gk := o.GroupVersionKind().GroupKind()
	return deliver.ObjectKey{Group: gk.Group, Kind: gk.Kind, Namespace: o.Namespace, Name: o.Name}
}

func fieldsOf(o metav1.PartialObjectMetadata) drift.Fields {
	return drift.FieldsOf(o.ManagedFields, object.FieldManager(object.OwnerOf(&o.ObjectMeta)))
}

// sumsOf is what the record of an add-on says that has applied these objects.
func sumsOf(objects ...metav1.PartialObjectMetadata) string {
	sums := drift.Sums{}
	for _, o := range objects {
		kind := o.GroupVersionKind().GroupKind()
		sum := sums[kind]
		sum.Add(nameOf(&o), fieldsOf(o))
		sums[kind] = sum
	}
	return sums.String()
}
