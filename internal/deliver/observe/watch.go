// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"math"
	"runtime/debug"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// watch watches a resource until ctx ends, from a resourceVersion on. It lists first if
// that is "", and again if the API server doesn't remember so far back.
func (t *Tracker) watch(ctx context.Context, cluster dynamic.Interface, resource schema.GroupVersionResource, k *kind, from string) {
	// The Reflector logs each failed request as an error. They are told by Failing.
	ctx = klog.NewContext(ctx, logr.Discard())
	defer func() { t.ended(ctx, PanicOf(recover())) }()
	logger := logr.Discard()
	objects := cluster.Resource(resource)
	note := func(err error) {
		t.mu.Lock()
		k.failing = err
		t.mu.Unlock()
	}
	events := &sink{ctx: ctx, tracker: t, kind: k}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			if from != "" {
				unlisted := &unstructured.UnstructuredList{}
				unlisted.SetResourceVersion(from)
				from, events.unlisted = "", true
				return unlisted, nil
			}
			options.LabelSelector = t.selector
			if options.ResourceVersion == "0" {
				// A cache may be behind, and would show an object as gone that was just made.
				options.ResourceVersion = ""
			}
			list, err := objects.List(ctx, options)
			note(err)
			if err != nil {
				return nil, err
			}
			return list, nil
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = t.selector
			w, err := objects.Watch(ctx, options)
			note(err)
			return w, err
		},
	}
	reflector := cache.NewReflectorWithOptions(
		cache.ToListWatcherWithWatchListSemantics(lw, listing{}), &unstructured.Unstructured{}, events,
		cache.ReflectorOptions{Logger: &logger, Name: "deliver", TypeDescription: resource.String()})
	reflector.RunWithContext(ctx)
}

// ended notes that a watch ended with a panic, if it did.
func (t *Tracker) ended(ctx context.Context, there *Panic) {
	if there == nil || ctx.Err() != nil {
		return
	}
	t.mu.Lock()
	t.panicked = there
	t.mu.Unlock()
	t.notify()
}

// listing makes a Reflector list, instead of watching for all that is there.
type listing struct{}

// IsWatchListSemanticsUnSupported is how client-go asks.
func (listing) IsWatchListSemanticsUnSupported() bool { return true }

// sink is a Reflector's store that keeps statuses instead of objects.
type sink struct {
	ctx     context.Context //nolint:containedctx // that of the watch, whose last events may come after its end
	tracker *Tracker
	kind    *kind
	// unlisted says that the next list is none: see [Tracker.watch].
	unlisted bool
}

func (s *sink) Add(obj any) error    { return s.seen(obj) }
func (s *sink) Update(obj any) error { return s.seen(obj) }
func (s *sink) Resync() error        { return nil }

func (s *sink) seen(obj any) error {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		s.change(func() bool { return s.judge(u) })
	}
	return nil
}

func (s *sink) Delete(obj any) error {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		s.change(func() bool {
			// It comes with the last state, which no event may have told of before.
			changed := s.judge(u)
			o, ok := s.kind.objects[keyOf(u)]
			return ok && s.tracker.observe(o, gone, version(u.GetResourceVersion())) || changed
		})
	}
	return nil
}

// Replace takes in a list: what isn't in it is gone, if the list is new enough.
func (s *sink) Replace(list []any, resourceVersion string) error {
	if s.unlisted {
		s.unlisted = false
		return nil
	}
	at := version(resourceVersion)
	if at == 0 {
		at = math.MaxUint64
	}
	s.change(func() bool {
		changed := false
		listed := make(map[Key]bool, len(list))
		for _, obj := range list {
			if u, ok := obj.(*unstructured.Unstructured); ok {
				listed[keyOf(u)] = true
				changed = s.judge(u) || changed
			}
		}
		for key, o := range s.kind.objects {
			if !listed[key] && at >= o.seen && o.status.Phase != Gone {
				changed = s.tracker.observe(o, gone, o.seen) || changed
			}
		}
		return changed
	})
	return nil
}

func (s *sink) judge(u *unstructured.Unstructured) bool {
	o, ok := s.kind.objects[keyOf(u)]
	if !ok {
		return false
	}
	seen := version(u.GetResourceVersion())
	if seen < o.seen {
		return false
	}
	return s.tracker.observe(o, o.judge(u), seen)
}

// change runs f under the lock, and notifies if it says so.
func (s *sink) change(f func() bool) {
	changed := func() bool {
		s.tracker.mu.Lock()
		defer s.tracker.mu.Unlock() // also if a judge panics
		return s.ctx.Err() == nil && f()
	}()
	if changed {
		s.tracker.notify()
	}
}

var gone = Status{Phase: Gone, Message: "it is gone"}

func keyOf(u *unstructured.Unstructured) Key {
	return Key{Namespace: u.GetNamespace(), Name: u.GetName()}
}

// Panic is one that a goroutine recovered from, to be told where it can be handled.
type Panic struct {
	Value any
	Stack []byte
}

// PanicOf returns what was recovered, with the stack of the caller; nil for nothing.
func PanicOf(recovered any) *Panic {
	if recovered == nil {
		return nil
	}
	return &Panic{Value: recovered, Stack: debug.Stack()}
}

// Panicked returns the panic that ended a watch, nil if none did.
func (t *Tracker) Panicked() *Panic {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.panicked
}
