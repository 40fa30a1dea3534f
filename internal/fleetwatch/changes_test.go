// SPDX-License-Identifier: Apache-2.0

package fleetwatch

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/observe"
)

// TestChangesThatAreEvaluated tells of any change of an object that is evaluated, at most once in ten seconds, and of none
// while nothing changes.
func TestChangesThatAreEvaluated(t *testing.T) {
	t.Parallel()
	w := watchObjects(t)
	took := func(why string, want ...deliver.ObjectKey) {
		t.Helper()
		if objects, listed := w.Changed(w.conn, web); fmt.Sprint(objects) != fmt.Sprint(want) || !listed {
			t.Errorf("%s: %v changed, listed: %t; want %v", why, objects, listed, want)
		}
	}
	turn := 0
	changes := func(o metav1.PartialObjectMetadata) {
		t.Helper()
		turn++
		w.server.put(with(o, func(o *metav1.PartialObjectMetadata) { o.Annotations = map[string]string{"their": fmt.Sprint(turn)} }))
		w.sync(o.Kind)
	}
	w.server.put(deployment())
	w.server.put(settings("a"))
	evaluated := schema.GroupKind{Group: keyOf(deployment()).Group, Kind: "Deployment"}
	expected := Expected{Objects: 2, Applied: sumsOf(deployment(), settings("a")), Evaluates: func(kind schema.GroupKind) bool { return kind == evaluated }}
	w.follow(map[deliver.Release]Expected{web: expected})
	w.awaitListed(deployment(), settings("a"))
	w.clock.step(quietAfterUpgrade)
	w.expectTold(1, "nobody has looked at the object yet")
	took("at first", keyOf(deployment()))
	took("a moment later")

	changes(deployment())
	changes(settings("a"))
	w.clock.step(lookPause / 2)
	w.expectTold(1, "it was looked at a moment ago")
	took("too early")
	w.clock.step(lookPause)
	w.expectTold(2, "its status has changed")
	w.server.cut(true)
	w.sync("Deployment")
	took("once more", keyOf(deployment()))

	w.LookAgain(w.conn, web, 3*lookPause)
	changes(deployment())
	w.clock.step(2 * lookPause)
	w.expectTold(2, "its look took several requests")
	w.clock.step(2 * lookPause)
	w.expectTold(3, "the pause is over")
	took("after a pause", keyOf(deployment()))

	changes(deployment())
	evaluatedAt := w.server.versionOf(deployment())
	w.Evaluated(w.conn, web, map[deliver.ObjectKey]observe.Status{keyOf(deployment()): {Version: evaluatedAt}})
	w.clock.step(2 * lookPause)
	w.expectTold(3, "it was evaluated just now, as it is")
	took("it was evaluated")
	changes(deployment())
	w.Evaluated(w.conn, web, map[deliver.ObjectKey]observe.Status{keyOf(deployment()): {Version: evaluatedAt}})
	w.clock.step(2 * lookPause)
	w.expectTold(4, "it has changed since it was evaluated")
	took("since it was evaluated", keyOf(deployment()))

	w.clock.step(2 * lookPause)
	changes(deployment())
	took("before somebody was told", keyOf(deployment()))
	changes(deployment())
	w.clock.step(time.Second)
	w.expectTold(4, "it was looked at a second ago")
	w.clock.step(lookPause)
	w.expectTold(5, "it has changed since that look")
	took("after that look", keyOf(deployment()))

	w.clock.step(time.Hour)
	w.expectTold(5, "nothing has changed")
	w.server.remove(deployment())
	w.sync("Deployment")
	w.clock.step(time.Second)
	took("it is gone", keyOf(deployment()))
}
