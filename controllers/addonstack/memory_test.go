// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"testing"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

func TestMemoryIsOfOneStack(t *testing.T) {
	r, s := &Reconciler{}, followingStack()
	known := r.memoryOf(s)
	if r.memoryOf(s.DeepCopy()) != known {
		t.Error("it is forgotten between two reconciles")
	}
	s.UID = "2"
	if r.memoryOf(s) == known {
		t.Error("another stack of this name has the same one")
	}
}

func TestRequest(t *testing.T) {
	now := time.Unix(1e9, 0)
	for name, tc := range map[string]struct {
		before     request
		generation int64
		lookNow    string
		isNew      bool
		wait       time.Duration
		acted      string // value of the annotation
	}{
		"a restart":                       {generation: 3, lookNow: "a", acted: "a"},
		"nothing":                         {before: request{generation: 3, lookNow: "a"}, generation: 3, lookNow: "a", acted: "a"},
		"an edit":                         {before: request{generation: 3, lookNow: "a"}, generation: 4, lookNow: "a", isNew: true, acted: "a"},
		"the first value since the start": {before: request{generation: 3, lookNow: "a"}, generation: 3, lookNow: "b", isNew: true, acted: "b"},
		"one soon after another": {
			before: request{generation: 3, lookNow: "b", since: now.Add(-time.Second)}, generation: 3, lookNow: "c", wait: lookNowPause - time.Second, acted: "b",
		},
		"with an edit": {
			before: request{generation: 3, lookNow: "b", since: now.Add(-time.Second)}, generation: 4, lookNow: "c", isNew: true, wait: lookNowPause - time.Second, acted: "b",
		},
		"after the pause": {
			before: request{generation: 3, lookNow: "b", since: now.Add(-lookNowPause)}, generation: 3, lookNow: "c", isNew: true, acted: "c",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := followingStack()
			s.Generation, s.Annotations = tc.generation, map[string]string{addonsv1.LookNowAnnotation: tc.lookNow}
			q := tc.before
			isNew, wait := q.update(s, now)
			if isNew != tc.isNew || wait != tc.wait || q.lookNow != tc.acted {
				t.Errorf("update() = %v, %s, and acts on %q; want %v, %s, %q", isNew, wait, q.lookNow, tc.isNew, tc.wait, tc.acted)
			}
		})
	}
}

// TestPace counts few clusters at once, and many less often, unless the spec is new.
func TestPace(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	counted := func(total int32, after time.Duration, generation int64) time.Duration {
		m, s := &memory{request: request{generation: 1}, counted: now}, followingStack()
		s.Generation, s.Status.Clusters = generation, &addonsv1.ClusterCounts{Total: total}
		return m.pace(s, now.Add(after))
	}
	for _, tc := range []struct {
		total      int32
		after      time.Duration
		generation int64
		want       time.Duration
	}{
		{total: 100, generation: 1},
		{total: 1100, generation: 1, want: time.Second},
		{total: 1100, generation: 1, after: 900 * time.Millisecond, want: 100 * time.Millisecond},
		{total: 1100, generation: 1, after: time.Second},
		{total: 1100, generation: 2},
	} {
		if got := counted(tc.total, tc.after, tc.generation); got != tc.want {
			t.Errorf("%+v: waits for %s", tc, got)
		}
	}
}
