// SPDX-License-Identifier: Apache-2.0

package removal_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/assignment/removal"
)

// What a cluster lost of one stack counts on when it loses something of another one, as long as it counts at all.
func TestRemovalsOfOtherStacksAreKept(t *testing.T) {
	ca, now := &addonsv1.ClusterAddon{}, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		after  time.Duration
		stacks []string
		want   []string
	}{
		{0, []string{"a"}, []string{"a"}},
		{removal.Window / 2, []string{"b", "c"}, []string{"a", "b", "c"}},
		{removal.Window / 2, nil, []string{"a", "b", "c"}},
		{time.Second, []string{"d"}, []string{"b", "c", "d"}},
	} {
		now = now.Add(step.after)
		removal.Note(ca, step.stacks, now)
		if got := slices.Sorted(maps.Keys(removal.Last(ca))); !slices.Equal(got, step.want) {
			t.Errorf("after %v it says %v, want %v", step.stacks, got, step.want)
		}
	}
	if at := removal.Last(ca)["b"]; !at.Equal(now.Add(-removal.Window/2 - time.Second)) {
		t.Errorf("b went at %s", at)
	}
}
