// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"testing"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/stacks"
)

// A revision that becomes the newest one begins another attempt, which says what brought it: its rollout may have to wait for
// another one. A limit that is edited begins none. The stack is in its second generation.
func TestCauseOfRevisions(t *testing.T) {
	for name, tc := range map[string]struct {
		newest   int64            // generation of a revision with another spec, the newest one; 0 if there is none
		is       *rollout.Attempt // of the revision that keeps the spec, nil if there is none yet
		kept     int64            // its generation
		without  bool             // a rollout
		want     rollout.Cause
		unstaged bool
		number   int64
	}{
		"the first revision":              {want: rollout.Edited, number: 1},
		"an edit":                         {newest: 1, want: rollout.Edited, number: 8},
		"a version":                       {newest: 2, want: rollout.Followed, number: 8},
		"an edit without a rollout":       {newest: 1, without: true, want: rollout.Edited, unstaged: true, number: 8},
		"a version without a rollout":     {newest: 2, without: true, want: rollout.Followed, unstaged: true, number: 8},
		"a limit is edited":               {kept: 1, is: &rollout.Attempt{Number: 1, Cause: rollout.Followed}, want: rollout.Followed, number: 1},
		"an edit is reverted":             {newest: 1, kept: 1, is: &rollout.Attempt{Number: 1, Cause: rollout.Followed}, want: rollout.Edited, number: 8},
		"it was completed: a step back":   {newest: 1, kept: 1, is: &rollout.Attempt{Number: 1, Cause: rollout.Edited, Started: time.Unix(1, 0), Completed: time.Unix(1, 0)}, want: rollout.Back, number: 8},
		"values are back without an edit": {newest: 2, kept: 1, is: &rollout.Attempt{Number: 1, Cause: rollout.Edited}, want: rollout.Followed, number: 8},
	} {
		t.Run(name, func(t *testing.T) {
			h, s, revision := keeping(t)
			if !tc.without {
				stacks.Read(t, h.Client, s)
				s.Spec.Rollout = &addonsv1.Rollout{}
				must.Succeed(t, h.Client.Update(t.Context(), s))
			}
			stacks.Read(t, h.Client, s)
			stacks.Read(t, h.Client, revision)
			if tc.newest > 0 {
				newest := stack.Snapshot(s, []byte("{}"), 7)
				stack.SetGeneration(newest, tc.newest)
				(&rollout.Attempt{Number: 7, Cause: rollout.Edited, Started: time.Unix(2, 0)}).Note(newest)
				must.Succeed(t, h.Client.Create(t.Context(), newest))
			}
			if stack.SetGeneration(revision, tc.kept); tc.is != nil {
				tc.is.Note(revision)
			}
			if must.Succeed(t, h.Client.Update(t.Context(), revision)); tc.kept == 0 {
				must.Succeed(t, h.Client.Delete(t.Context(), revision))
			}
			is, err := h.Keep(t.Context(), s, s, nil, nil)
			must.Succeed(t, err)
			kept := &is.Revisions[0]
			stacks.Read(t, h.Client, kept)
			if is := rollout.AttemptOf(kept); is.Cause != tc.want || is.Unstaged != tc.unstaged || is.Number != tc.number || kept.Revision != tc.number {
				t.Errorf("got %+v of revision %d", is, kept.Revision)
			}
		})
	}
}
