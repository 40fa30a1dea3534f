// SPDX-License-Identifier: Apache-2.0

// Package observe watches the objects of one add-on while somebody waits for
// them: to become ready, to finish, or to be gone. Nothing is polled. Only the status of each
// object is kept.
package observe

import (
	"context"
	"math"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/cluster-chandler/chandler/internal/deliver/contained"
)

// Phase is where an object stands with regard to what is waited for.
type Phase int

const (
	// InProgress: not there yet.
	InProgress Phase = iota
	// Current: ready, or done.
	Current
	// Failed: it won't become ready without a change.
	Failed
	// Gone: it isn't in the cluster.
	Gone
)

// Status of an object.
type Status struct {
	Phase   Phase
	Message string
	// Final says that the object has come to its end: it stays Current or Failed, also
	// when it is deleted, as a Job is by its ttlSecondsAfterFinished.
	Final bool
	// Available is how many replicas of a workload are available.
	Available int32
	// Version is the resourceVersion that the object was evaluated at, "" if that isn't known. Evaluators leave it out.
	Version string
}

// Evaluator tells an object's status. It is called for each change of the object, so
// it has to be quick. It must neither change nor keep the object.
type Evaluator func(*unstructured.Unstructured) Status

// Key of an object among those of one resource.
type Key = types.NamespacedName

// Object is an object to watch.
type Object struct {
	Resource  schema.GroupVersionResource
	Key       Key
	Evaluator Evaluator
	// Status as far as it is known. States older than its Version are ignored, and none that is newer is missed.
	Status Status
}

// messageDelay is how long a change of a message alone may go unnoticed.
const messageDelay = 5 * time.Second

// Tracker watches the objects of one add-on in one cluster, restricted by a label
// selector, with one watch for each resource. It is safe for concurrent use.
//
// Key: the kind, and the object.
// Bound: the objects of one add-on that are waited for.
// Lost with it: they are listed again.
type Tracker struct {
	selector string
	notify   func()
	clock    clock.WithDelayedExecution

	mu       sync.Mutex
	kinds    map[schema.GroupVersionResource]*kind
	delayed  clock.Timer      // for a notification about a message
	panicked *contained.Panic // that ended a watch
}

// kind is one resource's watch and the objects that are waited for.
type kind struct {
	objects map[Key]*tracked
	stop    context.CancelFunc
	root    context.Context //nolint:containedctx // to see whether the connection it hangs on is over
	failing error
}

type tracked struct {
	evaluator Evaluator
	status    Status
}

// New returns a Tracker. It calls notify, never with a lock held, when the phase
// of an object changes, or a watch begins to fail, and within seconds when only a message does.
func New(selector string, notify func(), c clock.WithDelayedExecution) *Tracker {
	return &Tracker{selector: selector, notify: notify, clock: c, kinds: make(map[schema.GroupVersionResource]*kind)}
}

// Track watches objects until Stop, or until root ends. A watch that has ended
// with its root starts again on the new one. An object that is tracked already
// gets the new evaluator and status.
func (t *Tracker) Track(root context.Context, cluster dynamic.Interface, objects ...Object) {
	t.mu.Lock()
	defer t.mu.Unlock()
	start := make(map[schema.GroupVersionResource]bool)
	for _, o := range objects {
		k := t.kinds[o.Resource]
		if k == nil {
			k = &kind{objects: make(map[Key]*tracked), stop: func() {}}
			t.kinds[o.Resource] = k
		}
		// Its events until now went by unseen, or were evaluated otherwise.
		if old, known := k.objects[o.Key]; !known || o.Status.version() < old.status.version() || !k.live() {
			start[o.Resource] = true
		}
		k.objects[o.Key] = &tracked{evaluator: o.Evaluator, status: o.Status}
	}
	for resource := range start {
		k := t.kinds[resource]
		from := ""
		if k.root == nil || k.live() { // else events may be too old, or of another server
			from = k.unseen()
		}
		k.stop()
		ctx, cancel := context.WithCancel(root)
		k.stop, k.root, k.failing = cancel, root, nil
		go t.watch(ctx, cluster.Resource(resource), k, from)
	}
}

// live reports whether the watch is on a connection that still is.
func (k *kind) live() bool { return k.root != nil && k.root.Err() == nil }

// unseen is the resourceVersion from which on no event of an object was seen; "" if that
// can't be told.
func (k *kind) unseen() string {
	from := uint64(math.MaxUint64)
	for _, o := range k.objects {
		from = min(from, o.status.version())
	}
	if from == 0 {
		return ""
	}
	return strconv.FormatUint(from, 10)
}

// Status returns the newest status of a tracked object.
func (t *Tracker) Status(resource schema.GroupVersionResource, key Key) (Status, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k := t.kinds[resource]; k != nil && k.objects[key] != nil {
		return k.objects[key].status, true
	}
	return Status{}, false
}

// Untrack forgets an object, and ends its resource's watch if that was the last one.
func (t *Tracker) Untrack(resource schema.GroupVersionResource, key Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.kinds[resource]
	if k == nil {
		return
	}
	delete(k.objects, key)
	if len(k.objects) == 0 {
		k.stop()
		delete(t.kinds, resource)
	}
}

// Live says whether the resource is being watched on a connection that still is.
func (t *Tracker) Live(resource schema.GroupVersionResource) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.kinds[resource]
	return k != nil && k.live()
}

// Failing returns why a resource can't be watched at present, nil if all can.
func (t *Tracker) Failing() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.kinds {
		if k.failing != nil {
			return k.failing
		}
	}
	return nil
}

// Fails reports whether a resource can't be watched at present.
func (t *Tracker) Fails(resource schema.GroupVersionResource) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.kinds[resource]
	return k != nil && k.failing != nil
}

// Stop ends all watches and forgets all objects. The Tracker can be used again.
func (t *Tracker) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.kinds {
		k.stop()
	}
	clear(t.kinds)
	t.panicked = nil
	if t.delayed != nil {
		t.delayed.Stop()
		t.delayed = nil
	}
}

// observe takes in an object's status; true if its phase changed.
func (t *Tracker) observe(o *tracked, status Status) bool {
	old := o.status
	if status.version() < old.version() || old.Final && status.Phase == Gone {
		return false
	}
	o.status = status
	if old.Message != status.Message && t.delayed == nil {
		t.delayed = t.clock.AfterFunc(messageDelay, func() {
			t.mu.Lock()
			t.delayed = nil
			t.mu.Unlock()
			t.notify()
		})
	}
	return old.Phase != status.Phase
}

// version reads the resourceVersion. They can be compared within a resource as the
// numbers that they are (KEP-5504); zero for one that isn't a number.
func (s Status) version() uint64 {
	n, err := strconv.ParseUint(s.Version, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
