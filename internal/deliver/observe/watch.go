// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/cluster-chandler/chandler/internal/deliver/contained"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// watchTimeout is how long the API server lets a watch go on. The next one begins where it ended.
const watchTimeout = 10 * time.Minute

// watch watches a resource until ctx ends, from a resourceVersion on. All of it is in this
// goroutine, so that a panic is recovered from.
func (t *Tracker) watch(ctx context.Context, objects dynamic.ResourceInterface, k *kind, from string) {
	defer func() {
		if there := contained.PanicOf(recover()); there != nil && ctx.Err() == nil {
			t.mu.Lock()
			t.panicked = there
			t.mu.Unlock()
			t.notify()
		}
	}()
	pause := retry.Waiting.DelayWithReset(t.clock, watchTimeout)
	for {
		from = t.watchOnce(ctx, objects, k, from)
		select {
		case <-ctx.Done():
			return
		case <-t.clock.After(pause()):
		}
	}
}

// watchOnce lists first if it is to watch from "", and returns where to go on from: "" if the API
// server doesn't remember so far back.
func (t *Tracker) watchOnce(ctx context.Context, objects dynamic.ResourceInterface, k *kind, from string) string {
	options := metav1.ListOptions{LabelSelector: t.selector}
	if from == "" {
		list, err := objects.List(ctx, options)
		if t.note(ctx, k, err); err != nil {
			return ""
		}
		t.listed(ctx, k, list)
		from = list.GetResourceVersion()
	}
	options.ResourceVersion, options.TimeoutSeconds = from, new(int64(watchTimeout.Seconds()))
	w, err := objects.Watch(ctx, options)
	if t.note(ctx, k, err); err != nil {
		return unlessForgotten(from, err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		u, ok := event.Object.(*unstructured.Unstructured)
		if !ok { // why it doesn't go on
			return unlessForgotten(from, apierrors.FromObject(event.Object))
		}
		from = u.GetResourceVersion()
		t.seen(ctx, k, u, event.Type == watch.Deleted)
	}
	return from
}

// unlessForgotten returns from where to watch after an error: "" if the API server has forgotten
// what came after.
func unlessForgotten(from string, err error) string {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return ""
	}
	return from
}

// note notes whether a resource can be watched at present. It notifies when that begins to fail, as its objects have to
// be looked at then.
func (t *Tracker) note(ctx context.Context, k *kind, err error) {
	t.change(ctx, func() bool {
		begins := err != nil && k.failing == nil
		k.failing = err
		return begins
	})
}

// seen takes in an event. The event of a deletion comes with the last state, which no earlier event
// may have told.
func (t *Tracker) seen(ctx context.Context, k *kind, u *unstructured.Unstructured, deleted bool) {
	t.change(ctx, func() bool {
		changed := t.evaluate(k, u)
		if o, ok := k.objects[keyOf(u)]; ok && deleted {
			changed = t.observe(o, goneAt(u.GetResourceVersion())) || changed
		}
		return changed
	})
}

// listed takes in a list: what isn't in it is gone, if the list is new enough.
func (t *Tracker) listed(ctx context.Context, k *kind, list *unstructured.UnstructuredList) {
	at := Status{Version: list.GetResourceVersion()}.version()
	t.change(ctx, func() bool {
		changed := false
		there := make(map[Key]bool, len(list.Items))
		for i := range list.Items {
			u := &list.Items[i]
			there[keyOf(u)] = true
			changed = t.evaluate(k, u) || changed
		}
		for key, o := range k.objects {
			if isNewer := at == 0 || at >= o.status.version(); isNewer && !there[key] && o.status.Phase != Gone {
				changed = t.observe(o, goneAt(o.status.Version)) || changed
			}
		}
		return changed
	})
}

func (t *Tracker) evaluate(k *kind, u *unstructured.Unstructured) bool {
	o, ok := k.objects[keyOf(u)]
	if !ok {
		return false
	}
	status := o.evaluator(u)
	status.Version = u.GetResourceVersion()
	return t.observe(o, status)
}

// change runs f under the lock, unless the watch has ended, and notifies if f says so.
func (t *Tracker) change(ctx context.Context, f func() bool) {
	changed := func() bool {
		t.mu.Lock()
		defer t.mu.Unlock() // also if an evaluator panics
		return ctx.Err() == nil && f()
	}()
	if changed {
		t.notify()
	}
}

func goneAt(version string) Status {
	return Status{Phase: Gone, Message: "it is gone", Version: version}
}

func keyOf(u *unstructured.Unstructured) Key {
	return Key{Namespace: u.GetNamespace(), Name: u.GetName()}
}

// Panicked returns the panic that ended a watch, nil if none did.
func (t *Tracker) Panicked() *contained.Panic {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.panicked
}
