// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"strconv"
	"testing"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// However often somebody asks for a look, there is one in some seconds, and the last wish
// isn't forgotten.
func TestLooksAtOnceAreFew(t *testing.T) {
	var w wishes
	var all outlooks
	now := time.Unix(1e9, 0)
	s := followingStack()
	looks, waits := 0, time.Duration(0)
	ask := func(value string) {
		t.Helper()
		view := s.DeepCopy()
		view.Annotations = map[string]string{addonsv1.LookNowAnnotation: value}
		waits = w.heed(view, now)
		if o := all.plan(view, "1", now, true); o.looking {
			looks++
			o.finish(view, now, false)
		}
	}
	ask("from before the start")
	if looks != 0 || waits != 0 {
		t.Fatalf("after a restart there are %d looks", looks)
	}
	for i := range 100 { // one each 0.1 s
		ask(strconv.Itoa(i))
		if looks == 0 {
			t.Fatal("the first wish has to wait")
		}
		now = now.Add(100 * time.Millisecond)
	}
	if looks != 2 {
		t.Errorf("%d looks in 10 s; want 2", looks)
	}
	if waits <= 0 || waits > lookNowPause {
		t.Errorf("the last wish waits %s", waits)
	}
	now = now.Add(waits)
	if ask("99"); looks != 3 || waits != 0 {
		t.Errorf("%d looks, and %s to wait; want the last wish heeded", looks, waits)
	}
	if ask("99"); looks != 3 {
		t.Error("a wish is heeded twice")
	}
}
