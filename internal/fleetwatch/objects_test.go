// SPDX-License-Identifier: Apache-2.0

package fleetwatch

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
)

// Objects of the add-on web.
func settings(fields ...string) metav1.PartialObjectMetadata {
	return shown("ConfigMap", web, "settings", fields...)
}

func deployment() metav1.PartialObjectMetadata { return shown("Deployment", web, "web", "a") }

// TestObjectsAsTheyWereApplied says nothing about them, however many pages their list has.
func TestObjectsAsTheyWereApplied(t *testing.T) {
	t.Parallel()
	for title, page := range map[string]int{"one page": 0, "several pages": 2} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			w := watchObjects(t)
			w.server.page = page
			objects := []metav1.PartialObjectMetadata{deployment()}
			for _, name := range []string{"a", "b", "c", "d", "e"} {
				objects = append(objects, shown("ConfigMap", web, name, name))
			}
			w.install(objects...)
			w.expectDiffers(false, "nothing was changed")
			for _, o := range objects {
				if fields, known := w.seen(o); !known || fields != fieldsOf(o) || fields == 0 {
					t.Errorf("%s %s has the fields %x, known: %t", o.Kind, o.Name, fields, known)
				}
			}
			if fields, known := w.Seen(w.conn, api)(keyOf(objects[1])); fields != 0 || !known {
				t.Errorf("an object of another add-on has the fields %x, known: %t", fields, known)
			}
			if fields, known := w.seen(shown("ConfigMap", web, "never-made")); fields != 0 || !known {
				t.Errorf("an object that isn't there has the fields %x, known: %t", fields, known)
			}
			if _, known := w.seen(shown("Secret", web, "x")); known {
				t.Error("something is known of a kind that isn't watched")
			}
			if state := w.state(); len(state.Unwatched) > 0 {
				t.Errorf("%v", state.Unwatched)
			}
		})
	}
}

// TestChangesOfObjects are told if they are of what the add-on has applied.
func TestChangesOfObjects(t *testing.T) {
	t.Parallel()
	change := func(f func(*metav1.PartialObjectMetadata)) func(*objectServer) {
		return func(s *objectServer) { s.put(with(settings("a", "b"), f)) }
	}
	for title, tc := range map[string]struct {
		change  func(*objectServer)
		differs bool
	}{
		"a field less":   {func(s *objectServer) { s.put(settings("a")) }, true},
		"a field more":   {func(s *objectServer) { s.put(settings("a", "b", "c")) }, true},
		"no field":       {change(func(o *metav1.PartialObjectMetadata) { o.ManagedFields = nil }), true},
		"its deletion":   {func(s *objectServer) { s.remove(settings()) }, true},
		"its label":      {change(func(o *metav1.PartialObjectMetadata) { o.Labels[addonsv1.AddonLabel] = "api" }), true},
		"its namespace":  {change(func(o *metav1.PartialObjectMetadata) { o.Labels[addonsv1.AddonNamespaceLabel] = "other" }), true},
		"no label":       {change(func(o *metav1.PartialObjectMetadata) { o.Labels = nil }), true},
		"its deployment": {func(s *objectServer) { s.remove(deployment()) }, true},
		"applied by a copy": {change(func(o *metav1.PartialObjectMetadata) {
			o.ManagedFields[0].Operation = metav1.ManagedFieldsOperationUpdate
		}), true},
		"an object of its labels and fields": {func(s *objectServer) { s.put(shown("ConfigMap", web, "another", "a")) }, true},

		"a label of somebody":       {change(func(o *metav1.PartialObjectMetadata) { o.Labels["their"] = "own" }), false},
		"an annotation of somebody": {change(func(o *metav1.PartialObjectMetadata) { o.Annotations = map[string]string{"their": "own"} }), false},
		"fields of somebody": {change(func(o *metav1.PartialObjectMetadata) {
			o.ManagedFields = append([]metav1.ManagedFieldsEntry{entryOf("kubectl", "c")}, o.ManagedFields...)
		}), false},
		"a status": {change(func(o *metav1.PartialObjectMetadata) {
			status := entryOf(object.FieldManager(web), "status")
			status.Subresource = "status"
			o.ManagedFields = append([]metav1.ManagedFieldsEntry{status}, o.ManagedFields...)
		}), false},
		"nothing at all": {change(func(*metav1.PartialObjectMetadata) {}), false},
		"an object of somebody": {func(s *objectServer) {
			s.put(with(settings("x"), func(o *metav1.PartialObjectMetadata) { o.Name, o.Labels = "theirs", nil }))
		}, false},
		"an object of an add-on nobody wants": {func(s *objectServer) { s.put(shown("ConfigMap", api, "settings-of-api", "x")) }, false},
		"a copy with its labels": {func(s *objectServer) {
			s.put(with(settings("x"), func(o *metav1.PartialObjectMetadata) { o.Name, o.ManagedFields[0].Manager = "copy", "kubectl" }))
		}, false},
		"a hook": {func(s *objectServer) {
			s.put(with(shown("ConfigMap", web, "hook", "x"), func(o *metav1.PartialObjectMetadata) {
				o.Annotations = map[string]string{deliver.HookRunAnnotation: "1"}
			}))
		}, false},
		"a release record": {func(s *objectServer) {
			s.put(with(shown("Secret", web, "sh.helm.release.v1.web.v2", "x"), func(o *metav1.PartialObjectMetadata) { o.Labels["owner"] = "helm" }))
		}, false},
		"a part of a record": {func(s *objectServer) {
			s.put(with(shown("Secret", web, "part", "x"), func(o *metav1.PartialObjectMetadata) { o.Labels["owner"] = "chandler" }))
		}, false},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			w := watchObjects(t)
			w.install(settings("a", "b"), deployment(), shown("Secret", web, "token", "a"))
			tc.change(w.server)
			w.sync("ConfigMap", "Deployment", "Secret")
			w.expectDiffers(tc.differs, "it was changed")
			if told := w.told.Load() > 0; told != tc.differs {
				t.Errorf("told: %t", told)
			}
		})
	}
}

// TestObjectsChangedWhileNobodyLooked are found by the first list, and told once that has settled.
func TestObjectsChangedWhileNobodyLooked(t *testing.T) {
	t.Parallel()
	w := watchObjects(t)
	w.server.put(settings("a"))
	w.follow(map[deliver.Release]Expected{web: {Objects: 9, Applied: sumsOf(settings("a", "b"), deployment())}})
	w.awaitListed(settings(), deployment())
	w.expectTold(0, "it may be a write of ours")
	w.expectDiffers(true, "one was changed, and one is gone")
	w.clock.step(quietAfterUpgrade)
	w.expectTold(1, "it wasn't")

	t.Run("and at once when the list comes late", func(t *testing.T) {
		w := watchObjects(t)
		w.server.refuse("ConfigMap", 500)
		w.follow(map[deliver.Release]Expected{web: {Objects: 9, Applied: sumsOf(settings("a"))}})
		w.clock.step(quietAfterUpgrade)
		w.server.refuse("ConfigMap", 0)
		eventually(t, "a list that differs is told", func() bool { return w.told.Load() == 1 })
	})
}

// TestObjectsOfABusyAddon aren't compared until it is done.
func TestObjectsOfABusyAddon(t *testing.T) {
	t.Parallel()
	w := watchObjects(t)
	before := w.install(settings("a"), deployment())
	busy := before
	busy.Busy = true
	w.follow(map[deliver.Release]Expected{web: busy})
	w.server.put(settings("a", "b"))
	w.clock.step(time.Hour)
	w.expectTold(0, "it is busy")
	w.expectDiffers(false, "it is busy")

	w.follow(map[deliver.Release]Expected{web: before})
	w.expectDiffers(true, "it isn't busy any more, and as before")
	w.expectTold(0, "the last events may come yet")
	w.clock.step(quietAfterUpgrade)
	w.expectTold(1, "none came")

	w.follow(map[deliver.Release]Expected{web: busy})
	after := Expected{Objects: 9, Applied: sumsOf(settings("a", "b"), deployment())}
	w.follow(map[deliver.Release]Expected{web: after})
	w.clock.step(quietAfterUpgrade)
	w.expectTold(1, "now it has what it is to have")
	w.expectDiffers(false, "it is upgraded")
	w.server.remove(deployment())
	w.expectTold(2, "it isn't busy")
}

// TestObjectsOfAnUpgrade may come a moment after the record says so.
func TestObjectsOfAnUpgrade(t *testing.T) {
	t.Parallel()
	for title, comes := range map[string]bool{"the events come": true, "one of them doesn't come": false} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			w := watchObjects(t)
			w.install(settings("a"), deployment())
			w.follow(map[deliver.Release]Expected{web: {Objects: 9, Applied: sumsOf(settings("b"), shown("ConfigMap", web, "new", "a"))}})
			w.expectDiffers(true, "no event came yet")
			w.server.put(settings("b"))
			w.server.remove(deployment())
			w.clock.step(quietAfterUpgrade - 1)
			w.expectTold(0, "it is too early")
			if comes {
				w.server.put(shown("ConfigMap", web, "new", "a"))
				w.expectTold(0, "all is there")
			}
			w.clock.step(1)
			w.expectDiffers(!comes, title)
			if comes {
				w.expectTold(0, title)
			} else {
				w.expectTold(1, title)
			}
		})
	}
}

// TestObjectsThatAreRepaired are changed by ourselves.
func TestObjectsThatAreRepaired(t *testing.T) {
	t.Parallel()
	w := watchObjects(t)
	w.install(settings("a"), deployment())
	w.server.put(settings())
	w.expectTold(1, "it was changed")

	done := w.Repairing(w.conn, web)
	w.server.remove(settings())
	w.clock.step(time.Hour)
	w.expectTold(1, "it is being repaired")
	w.follow(map[deliver.Release]Expected{web: {Objects: 9, Applied: sumsOf(settings("a"), deployment()), Terms: "others"}})
	w.clock.step(time.Hour)
	w.expectTold(1, "it is being repaired still")
	done()
	w.expectTold(1, "the last events may come yet")
	w.server.put(settings("a"))
	w.expectTold(1, "they did")
	w.clock.step(quietAfterRepair)
	w.expectTold(1, "all is as expected again")
	w.expectDiffers(false, "it was repaired")

	done = w.Repairing(w.conn, web)
	w.server.put(settings("b"))
	w.sync("ConfigMap")
	done()
	w.clock.step(quietAfterRepair)
	w.expectTold(2, "somebody changed it meanwhile")

	// Nothing is to be said again about what the repair couldn't change.
	done = w.Repairing(w.conn, web)
	done()
	w.clock.step(time.Hour)
	w.expectTold(2, "whoever tried to repair it knows")
	w.server.cut(true)
	w.expectTold(2, "another list shows the same")
	w.server.put(with(settings("b"), func(o *metav1.PartialObjectMetadata) { o.Labels["their"] = "own" }))
	w.expectTold(2, "that is theirs")
	w.expectDiffers(true, "it differs still")
	w.server.put(settings("c"))
	w.expectTold(3, "it was changed again")
	w.server.put(settings("b"))
	w.expectTold(4, "it was changed back to what was known")
}
