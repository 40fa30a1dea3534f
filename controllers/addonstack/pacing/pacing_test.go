// SPDX-License-Identifier: Apache-2.0

package pacing_test

import (
	"testing"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/pacing"
)

func TestRequest(t *testing.T) {
	now := time.Unix(1e9, 0)
	for name, tc := range map[string]struct {
		before     pacing.Request
		generation int64
		lookNow    string
		isNew      bool
		wait       time.Duration
		acted      string // value of the annotation
	}{
		"a restart":                       {generation: 3, lookNow: "a", acted: "a"},
		"nothing":                         {before: pacing.Request{Generation: 3, LookNow: "a"}, generation: 3, lookNow: "a", acted: "a"},
		"an edit":                         {before: pacing.Request{Generation: 3, LookNow: "a"}, generation: 4, lookNow: "a", isNew: true, acted: "a"},
		"the first value since the start": {before: pacing.Request{Generation: 3, LookNow: "a"}, generation: 3, lookNow: "b", isNew: true, acted: "b"},
		"one soon after another": {
			before: pacing.Request{Generation: 3, LookNow: "b", Since: now.Add(-time.Second)}, generation: 3, lookNow: "c", wait: pacing.LookNowPause - time.Second, acted: "b",
		},
		"with an edit": {
			before: pacing.Request{Generation: 3, LookNow: "b", Since: now.Add(-time.Second)}, generation: 4, lookNow: "c", isNew: true, wait: pacing.LookNowPause - time.Second, acted: "b",
		},
		"after the pause": {
			before: pacing.Request{Generation: 3, LookNow: "b", Since: now.Add(-pacing.LookNowPause)}, generation: 3, lookNow: "c", isNew: true, acted: "c",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &addonsv1.AddonStack{}
			s.Generation, s.Annotations = tc.generation, map[string]string{addonsv1.LookNowAnnotation: tc.lookNow}
			q := tc.before
			isNew, wait := q.Update(s, now)
			if isNew != tc.isNew || wait != tc.wait || q.LookNow != tc.acted {
				t.Errorf("Update() = %v, %s, and acts on %q; want %v, %s, %q", isNew, wait, q.LookNow, tc.isNew, tc.wait, tc.acted)
			}
		})
	}
}

// TestPace counts few clusters at once, and many less often, unless the spec is new.
func TestPace(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	counted := func(total int32, after time.Duration, isNew bool) time.Duration {
		c, s := &pacing.Count{}, &addonsv1.AddonStack{}
		c.Wait(s, false, now)
		s.Status.Clusters = &addonsv1.ClusterCounts{Total: total}
		return c.Wait(s, isNew, now.Add(after))
	}
	for _, tc := range []struct {
		total int32
		after time.Duration
		isNew bool
		want  time.Duration
	}{
		{total: 100},
		{total: 1100, want: time.Second},
		{total: 1100, after: 900 * time.Millisecond, want: 100 * time.Millisecond},
		{total: 1100, after: time.Second},
		{total: 1100, isNew: true},
	} {
		if got := counted(tc.total, tc.after, tc.isNew); got != tc.want {
			t.Errorf("%+v: waits for %s", tc, got)
		}
	}
}
