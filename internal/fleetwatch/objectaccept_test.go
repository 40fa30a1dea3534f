// SPDX-License-Identifier: Apache-2.0

package fleetwatch

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/repair"
)

// accept takes objects as they are on the server, as a repair does that leaves them so.
func (w *watched) accept(pairs ...[2]metav1.PartialObjectMetadata) {
	done := w.Repairing(w.conn, web)
	var found []repair.Difference
	for _, pair := range pairs {
		found = append(found, repair.Difference{Object: keyOf(pair[0]), Applied: fieldsOf(pair[0]), Now: fieldsOf(pair[1])})
	}
	w.Accept(w.conn, web, found)
	done()
	w.clock.step(quietAfterRepair)
}

type changedObject = [2]metav1.PartialObjectMetadata

// TestAcceptedObjects stay as they are, until they are changed again.
func TestAcceptedObjects(t *testing.T) {
	t.Parallel()
	second := func(fields ...string) metav1.PartialObjectMetadata {
		return shown("ConfigMap", web, "second", fields...)
	}
	gone := shown("Deployment", web, "web")
	gone.ManagedFields = nil
	newWatched := func(t *testing.T) *watched {
		t.Helper()
		w := watchObjects(t)
		w.install(settings("a"), second("a"), deployment())
		w.server.put(settings("b"))
		w.expectTold(1, "it was changed")
		w.server.remove(deployment())
		w.expectTold(2, "it was deleted")
		w.accept(changedObject{settings("a"), settings("b")}, changedObject{deployment(), gone})
		w.expectTold(2, "the changes are accepted")
		w.expectDiffers(false, "the changes are accepted")
		return w
	}
	for title, change := range map[string]func(*watched){
		"the object is changed again":        func(w *watched) { w.server.put(settings("c")) },
		"the object is changed back":         func(w *watched) { w.server.put(settings("a")) },
		"the object is deleted":              func(w *watched) { w.server.remove(settings()) },
		"the deleted object is there again":  func(w *watched) { w.server.put(deployment()) },
		"another object is changed":          func(w *watched) { w.server.put(second("b")) },
		"an object is made with our manager": func(w *watched) { w.server.put(shown("ConfigMap", web, "third", "a")) },
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			w := newWatched(t)
			change(w)
			w.expectTold(3, title)
			w.expectDiffers(true, title)
		})
	}
	t.Run("others change what is theirs", func(t *testing.T) {
		t.Parallel()
		w := newWatched(t)
		w.server.put(with(settings("b"), func(o *metav1.PartialObjectMetadata) {
			o.ManagedFields = append(o.ManagedFields, entryOf("kubectl", "x"))
		}))
		w.expectTold(2, "that is theirs")
		w.expectDiffers(false, "that is theirs")
	})
	t.Run("other terms, as rules", func(t *testing.T) {
		t.Parallel()
		w := newWatched(t)
		w.follow(map[deliver.Release]Expected{web: {Objects: 3, Applied: sumsOf(settings("a"), second("a"), deployment()), Terms: "others"}})
		w.expectDiffers(true, "it was accepted on other terms")
		w.expectTold(2, "it is early")
		w.clock.step(quietAfterUpgrade)
		w.expectTold(3, "it was accepted on other terms")
	})
	t.Run("nothing new is wanted", func(t *testing.T) {
		t.Parallel()
		w := newWatched(t)
		w.follow(map[deliver.Release]Expected{web: {Objects: 3, Applied: sumsOf(settings("a"), second("a"), deployment())}})
		w.clock.step(time.Hour)
		w.expectTold(2, "it is as before")
		w.expectDiffers(false, "it is as before")
	})
	t.Run("another is accepted instead", func(t *testing.T) {
		t.Parallel()
		w := newWatched(t)
		w.server.put(second("b"))
		w.expectTold(3, "it was changed, too")
		w.accept(changedObject{second("a"), second("b")})
		w.expectDiffers(true, "the first two aren't accepted any more")
		w.accept(changedObject{settings("a"), settings("b")}, changedObject{second("a"), second("b")}, changedObject{deployment(), gone})
		w.expectDiffers(false, "all are accepted")
		w.accept()
		w.expectDiffers(true, "none is accepted")
		w.server.put(settings("a"))
		w.server.put(second("a"))
		w.server.put(deployment())
		w.sync("ConfigMap", "Deployment")
		w.expectDiffers(false, "all are as they were applied")
	})
	t.Run("another one of the same object", func(t *testing.T) {
		t.Parallel()
		w := newWatched(t)
		w.server.put(settings("c"))
		w.expectTold(3, "it was changed again")
		w.accept(changedObject{settings("a"), settings("c")}, changedObject{deployment(), gone})
		w.expectDiffers(false, "it is accepted as it is now")
		w.server.put(settings("b"))
		w.expectTold(4, "that was accepted before")
	})
	t.Run("what isn't wanted at all", func(t *testing.T) {
		t.Parallel()
		w := newWatched(t)
		w.Accept(w.conn, api, []repair.Difference{{Object: keyOf(settings()), Applied: 1, Now: 2}})
		w.expectDiffers(false, "that is another add-on")
		w.accept(changedObject{settings("a"), settings("b")}, changedObject{deployment(), gone},
			changedObject{shown("Secret", web, "x", "a"), shown("Secret", web, "x", "b")})
		w.expectDiffers(false, "no Secret is wanted")
	})
}
