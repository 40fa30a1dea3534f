// SPDX-License-Identifier: Apache-2.0

package fleetwatch

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestBrokenWatches are begun again: what changed meanwhile is found, and nothing else is told.
func TestBrokenWatches(t *testing.T) {
	t.Parallel()
	for title, breaks := range map[string]func(*watched){
		"the watch ends":               func(w *watched) { w.server.cut(false) },
		"the server forgets":           func(w *watched) { w.server.cut(true) },
		"the server fails for a while": func(w *watched) { w.server.refuse("ConfigMap", http.StatusInternalServerError) },
		"it is unavailable":            func(w *watched) { w.server.refuse("ConfigMap", http.StatusServiceUnavailable) },
		"it is busy":                   func(w *watched) { w.server.refuse("ConfigMap", http.StatusTooManyRequests) },
		"the token isn't valid":        func(w *watched) { w.server.refuse("ConfigMap", http.StatusUnauthorized) },
		"what it sends isn't an event": func(w *watched) {
			w.server.set(func(s *objectServer) {
				var sent atomic.Bool
				s.cuts++
				s.strange = func(kind string, answer http.ResponseWriter, r *http.Request) bool {
					if kind != "ConfigMap" || !watches(r) || sent.Swap(true) {
						return false
					}
					_, _ = io.WriteString(answer, `{"type":"MODIFIED","object":{"kind":"ConfigMap","metadata":[]}}`+"\n<html>")
					return true
				}
			})
		},
	} {
		for _, changes := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, and objects change: %t", title, changes), func(t *testing.T) {
				t.Parallel()
				w := watchObjects(t)
				w.install(settings("a"), shown("ConfigMap", web, "second", "a"))
				w.expectTold(0, "nothing was changed")
				breaks(w)
				eventually(t, "the watch ended", func() bool {
					return w.server.count(w.server.watching, "ConfigMap") == 0 || w.server.count(w.server.refused, "ConfigMap") == 0
				})
				if changes {
					w.server.remove(settings())
				}
				w.server.refuse("ConfigMap", 0)
				w.sync("ConfigMap")
				w.expectDiffers(changes, title)
				if changes {
					w.expectTold(1, title)
				} else {
					w.expectTold(0, title)
				}
				if state := w.state(); len(state.Unwatched) > 0 {
					t.Errorf("%v", state.Unwatched)
				}
			})
		}
	}
}

// TestPanicsAreContained in the watch of a kind: it is begun again, and others go on.
func TestPanicsAreContained(t *testing.T) {
	t.Parallel()
	w := watchObjects(t)
	w.install(settings("a"), deployment())
	var panicked atomic.Bool
	w.onTold = func() {
		if !panicked.Swap(true) {
			panic("by the test")
		}
	}
	w.server.remove(settings())
	eventually(t, "it panics", panicked.Load)
	w.server.remove(deployment())
	eventually(t, "another kind is watched", func() bool { return w.told.Load() == 2 })
	w.server.put(settings("b"))
	eventually(t, "the kind is watched again", func() bool {
		w.clock.step(time.Minute)
		fields, _ := w.seen(settings())
		return fields == fieldsOf(settings("b"))
	})
}

// TestManagedFieldsThatNobodyCanRead count as none, and harm nobody else.
func TestManagedFieldsThatNobodyCanRead(t *testing.T) {
	t.Parallel()
	w := watchObjects(t)
	garbage := []string{
		`7`, `"text"`, `[]`, `[{"f:a":{}}]`, `{"f:a":[1]}`, `{"f:a":"b"}`, `{"":{}}`, `{"x":{}}`, `{"k:{":{}}`, `{"k:[]":{}}`,
		`{"v:":{}}`, `{"v:1e999":{}}`, `{"i:x":{}}`, `{"i:99999999999999999999":{}}`, `{"f:":{".":7}}`,
		strings.Repeat(`{"f:a":`, 5000) + "{}" + strings.Repeat("}", 5000),
		`{"v:` + strings.Repeat("[", 100_000) + `":{}}`,
	}
	strange := func(i int) metav1.PartialObjectMetadata {
		return with(shown("ConfigMap", web, fmt.Sprint("strange", i)), func(o *metav1.PartialObjectMetadata) {
			o.ManagedFields[0].FieldsV1.SetRawString(garbage[i])
		})
	}
	all := []metav1.PartialObjectMetadata{settings("a")}
	for i := range garbage {
		all = append(all, strange(i))
	}
	w.install(all...)
	for i := range garbage {
		w.server.remove(strange(i))
		w.server.put(strange(i))
	}
	w.sync("ConfigMap")
	w.expectDiffers(false, "all is as it was")
	w.server.put(with(settings(), func(o *metav1.PartialObjectMetadata) { o.ManagedFields[0].FieldsV1.SetRawString(`{"f:data":7}`) }))
	w.sync("ConfigMap")
	w.expectDiffers(true, "its fields are gone")
	w.server.put(with(settings(), func(o *metav1.PartialObjectMetadata) { o.ManagedFields[0].FieldsV1 = nil }))
	w.sync("ConfigMap")
	w.expectDiffers(true, "its fields are gone")
}
