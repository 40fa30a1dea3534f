// SPDX-License-Identifier: Apache-2.0

package fleetwatch

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/test/connection"
)

var widgetKind = schema.GroupKind{Group: "example.com", Kind: "Widget"}

func widget() metav1.PartialObjectMetadata { return shown("Widget", web, "widget", "a") }

func isTooMany(err error) bool {
	limit, ok := errors.AsType[*fleet.LimitError](err)
	return ok && limit.Reason == reasons.ResponseTooLarge
}

// awaitUnwatched waits until it is said why widgets aren't watched, and nothing of other kinds.
func (w *watched) awaitUnwatched(because func(error) bool) {
	w.t.Helper()
	eventually(w.t, "the state tells why widgets aren't watched", func() bool {
		unwatched := w.state().Unwatched
		return len(unwatched) == 1 && because(unwatched[widgetKind])
	})
}

// expectKept expects that as many objects are counted as are kept.
func (w *watched) expectKept() {
	w.t.Helper()
	c := w.of("ns/prod", w.conn, false)
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := 0
	for _, k := range c.kinds {
		kept += len(k.objects)
	}
	if c.objects != kept {
		w.t.Errorf("%d objects are kept, and %d are counted", kept, c.objects)
	}
}

// TestKindsThatCannotBeWatched are told, the others are compared, and all is well once they can.
func TestKindsThatCannotBeWatched(t *testing.T) {
	t.Parallel()
	crowd := func(n int) func(*watched) {
		return func(w *watched) {
			for i := range n {
				w.server.put(shown("Widget", api, fmt.Sprint("w", i), "a"))
			}
		}
	}
	answerWatches := func(status int) func(*watched) {
		return func(w *watched) {
			w.server.set(func(s *objectServer) {
				s.cuts++
				s.strange = func(kind string, answer http.ResponseWriter, r *http.Request) bool {
					if kind != "Widget" || !watches(r) {
						return false
					}
					answer.WriteHeader(status)
					return true
				}
			})
		}
	}
	for title, tc := range map[string]struct {
		before, after func(*watched) // the kind is first watched
		because       func(error) bool
		heals         func(*watched)
	}{
		"forbidden":                {before: func(w *watched) { w.server.refuse("Widget", http.StatusForbidden) }, because: apierrors.IsForbidden},
		"unknown":                  {before: func(w *watched) { w.server.set(func(s *objectServer) { s.missing["Widget"] = true }) }, because: meta.IsNoMatchError},
		"it has no list":           {before: func(w *watched) { w.server.refuse("Widget", http.StatusMethodNotAllowed) }, because: apierrors.IsMethodNotSupported},
		"it has no watch":          {before: answerWatches(http.StatusMethodNotAllowed), because: apierrors.IsMethodNotSupported},
		"too many":                 {before: crowd(100), because: isTooMany},
		"gone while it is watched": {after: func(w *watched) { w.server.refuse("Widget", http.StatusNotFound) }, because: apierrors.IsNotFound},
		"forbidden later":          {after: func(w *watched) { w.server.refuse("Widget", http.StatusForbidden) }, because: apierrors.IsForbidden},
		"forbidden later to watch": {after: answerWatches(http.StatusForbidden), because: apierrors.IsForbidden},
		"too many later":           {after: crowd(100), because: isTooMany},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			w := watchObjects(t)
			w.limit = 50
			w.server.put(widget())
			w.server.put(settings("a"))
			if tc.before != nil {
				tc.before(w)
			}
			w.follow(map[deliver.Release]Expected{web: {Objects: 9, Applied: sumsOf(settings("a"), widget())}})
			w.awaitListed(settings())
			w.clock.step(quietAfterUpgrade)
			if tc.after != nil {
				w.awaitListed(widget())
				w.expectTold(0, "all is well")
				tc.after(w)
			}
			w.awaitUnwatched(tc.because)
			eventually(t, "it is told", func() bool { return w.told.Load() > 0 })
			w.expectDiffers(false, "nothing is known of the widget")
			if _, known := w.seen(widget()); known {
				t.Error("the widget is known")
			}
			eventually(t, "it is tried again after minutes", func() bool { return w.clock.hasAlarmIn(retry.Unwatchable - quietAfterUpgrade) })
			told := int(w.told.Load())
			w.server.put(settings("b"))
			eventually(t, "other kinds are compared", func() bool { return int(w.told.Load()) > told })
			w.expectDiffers(true, "other kinds are compared")
			w.server.put(settings("a"))
			w.sync("ConfigMap")
			w.expectKept()

			told = int(w.told.Load())
			w.server.set(func(s *objectServer) {
				clear(s.refused)
				clear(s.missing)
				s.strange = nil
			})
			for i := range 100 {
				w.server.remove(shown("Widget", api, fmt.Sprint("w", i)))
			}
			eventually(t, "it is watched again, and that is told", func() bool {
				w.clock.step(2 * retry.Unwatchable)
				return len(w.state().Unwatched) == 0 && int(w.told.Load()) > told
			})
			w.expectDiffers(false, "the widget is as it was")
			w.sync("Widget")
			w.expectKept()
			told = int(w.told.Load())
			w.server.put(shown("Widget", web, "widget", "b"))
			w.expectTold(told+1, "the widget was changed")
			w.expectDiffers(true, "the widget was changed")
		})
	}
}

// TestKindThatMovesToAnotherVersion is watched there.
func TestKindThatMovesToAnotherVersion(t *testing.T) {
	t.Parallel()
	w := watchObjects(t)
	w.install(widget(), settings("a"))
	w.server.set(func(s *objectServer) {
		s.moved["Widget"] = "v2"
		s.cuts++
	})
	w.awaitUnwatched(apierrors.IsNotFound)
	w.server.remove(widget())
	eventually(t, "it is watched again", func() bool {
		w.clock.step(2 * retry.Unwatchable)
		state := w.state()
		return state.Differs && len(state.Unwatched) == 0
	})
}

// TestKindWhoseCRDIsDeleted isn't told about again and again.
func TestKindWhoseCRDIsDeleted(t *testing.T) {
	t.Parallel()
	w := watchObjects(t)
	w.install(widget(), settings("a"))
	w.server.set(func(s *objectServer) {
		s.missing["Widget"] = true
		s.cuts++
	})
	w.awaitUnwatched(apierrors.IsNotFound)
	again := func() {
		eventually(t, "it waits", func() bool { return w.clock.hasAlarmIn(retry.Unwatchable - quietAfterUpgrade) })
		w.clock.step(2 * retry.Unwatchable)
		eventually(t, "it waits again", func() bool { return w.clock.hasAlarmIn(retry.Unwatchable - quietAfterUpgrade) })
	}
	again()
	told := int(w.told.Load())
	for range 4 {
		again()
		w.awaitUnwatched(meta.IsNoMatchError)
	}
	w.expectTold(told, "it isn't there still")
	w.server.set(func(s *objectServer) { s.missing["Widget"] = false })
	eventually(t, "it is watched again", func() bool {
		w.clock.step(2 * retry.Unwatchable)
		return len(w.state().Unwatched) == 0
	})
	w.expectDiffers(false, "it is as it was")
}

// TestReasonsThatChange are told as they are now.
func TestReasonsThatChange(t *testing.T) {
	t.Parallel()
	w := watchObjects(t)
	w.server.put(settings("a"))
	w.server.refuse("Widget", http.StatusForbidden)
	w.follow(map[deliver.Release]Expected{web: {Objects: 9, Applied: sumsOf(settings("a"), widget())}})
	w.awaitListed(settings())
	w.awaitUnwatched(apierrors.IsForbidden)
	w.server.refuse("Widget", http.StatusNotFound)
	eventually(t, "the reason is another one", func() bool {
		w.clock.step(2 * retry.Unwatchable)
		return apierrors.IsNotFound(w.state().Unwatched[widgetKind])
	})
}

// TestObjectsOfOneClusterAreLimited, those of all kinds together.
func TestObjectsOfOneClusterAreLimited(t *testing.T) {
	t.Parallel()
	for where, below := range connection.Paths {
		t.Run(where, func(t *testing.T) { areLimited(t, watchObjectsAt(t, below)) })
	}
}

func areLimited(t *testing.T, w *watched) {
	t.Helper()
	w.limit = 50
	objects := []metav1.PartialObjectMetadata{widget()}
	for i := range 45 {
		objects = append(objects, shown("ConfigMap", web, fmt.Sprint("c", i), "a"))
	}
	w.install(objects...)
	for i := range 10 {
		w.server.put(shown("Widget", api, fmt.Sprint("w", i), "a"))
	}
	w.awaitUnwatched(isTooMany)
	w.sync("ConfigMap")
	// The others take no room once they are gone, or aren't watched any more.
	for i := range 20 {
		w.server.remove(shown("ConfigMap", web, fmt.Sprint("c", i)))
	}
	w.sync("ConfigMap")
	eventually(t, "there is room", func() bool {
		w.clock.step(2 * retry.Unwatchable)
		return len(w.state().Unwatched) == 0
	})
	w.follow(map[deliver.Release]Expected{web: {Objects: 9, Applied: sumsOf(widget())}})
	for i := range 30 {
		w.server.put(shown("Widget", api, fmt.Sprint("x", i), "a"))
	}
	w.sync("Widget")
	if state := w.state(); len(state.Unwatched) > 0 {
		t.Errorf("%v", state.Unwatched)
	}
}

// TestListsThatAreTooLong aren't read to their end.
func TestListsThatAreTooLong(t *testing.T) {
	t.Parallel()
	w := watchObjects(t)
	w.limit, w.server.page = 50, 10
	for i := range 100 {
		w.server.put(shown("Widget", api, fmt.Sprint("w", i), "a"))
	}
	w.follow(map[deliver.Release]Expected{web: {Objects: 9, Applied: sumsOf(widget())}})
	w.awaitUnwatched(isTooMany)
	if pages := w.server.count(w.server.lists, "Widget"); pages != 6 {
		t.Errorf("%d pages were read", pages)
	}
}
