// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/history"
	"github.com/cluster-chandler/chandler/controllers/addonstack/report"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/stacks"
)

var now = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// keeping returns the history of a stack in its second generation, which a revision keeps.
func keeping(t *testing.T) (history.History, *addonsv1.AddonStack, *appsv1.ControllerRevision) {
	t.Helper()
	c, s, revision := stacks.Kept(t)
	return history.History{Client: c, APIReader: c, Events: report.Events{Recorder: events.NewFakeRecorder(100)}, Clock: clocktesting.NewFakePassiveClock(now)}, s, revision
}

// A spec is kept only as it is there now, and in no place of a newer one. A spec that is kept already isn't written again, but
// for its generation. If it returns to what an earlier revision keeps, that one becomes the newest.
func TestKeepRevision(t *testing.T) {
	for name, tc := range map[string]struct {
		seen       func(s *addonsv1.AddonStack) // what the cache shows, and was validated
		generation int64                        // of the revision that keeps the spec, 2 if it isn't set
		newest     bool                         // another revision is the newest
		stale      bool
		number     int64 // that the revision has then; it is written if that is another, or its generation
	}{
		"it is kept":                      {number: 1},
		"the spec has changed":            {seen: func(s *addonsv1.AddonStack) { s.Generation = 1 }, generation: 1, stale: true, number: 1},
		"it is another stack":             {seen: func(s *addonsv1.AddonStack) { s.UID = "0" }, stale: true, number: 1},
		"a newer spec is kept":            {generation: 3, stale: true, number: 1},
		"an older spec was just the same": {generation: 1, number: 1},
		"it goes back":                    {generation: 1, newest: true, number: 8},
	} {
		t.Run(name, func(t *testing.T) {
			h, s, revision := keeping(t)
			recorder := events.NewFakeRecorder(1)
			h.Events.Recorder = recorder
			stacks.Read(t, h.Client, revision)
			if tc.generation > 0 {
				stack.SetGeneration(revision, tc.generation)
				must.Succeed(t, h.Client.Update(t.Context(), revision))
			}
			if tc.newest {
				must.Succeed(t, h.Client.Create(t.Context(), stack.Snapshot(s, []byte("{}"), 7)))
			}
			stacks.Read(t, h.Client, s)
			if tc.seen != nil {
				tc.seen(s)
			}
			kept, err := h.Keep(t.Context(), s, s, nil, nil)
			if apierrors.IsConflict(err) != tc.stale || err != nil && !tc.stale {
				t.Fatalf("got %v", err)
			}
			is := revision.DeepCopy()
			stacks.Read(t, h.Client, is)
			isOld := !tc.stale && stack.Generation(revision) != s.Generation
			if writes := is.ResourceVersion != revision.ResourceVersion; writes != isOld || is.Revision != tc.number || (len(recorder.Events) > 0) != tc.newest {
				t.Errorf("it was written: %t, number %d, %d events", writes, is.Revision, len(recorder.Events))
			}
			if !tc.stale && (kept.Revisions[0].Name != revision.Name || stack.Generation(&kept.Revisions[0]) != s.Generation) {
				t.Errorf("got %+v", kept.Revisions)
			}
		})
	}
}

// A newer program has kept the spec with what this one doesn't know.
func TestRevisionOfANewerProgramIsNotUsed(t *testing.T) {
	h, s, revision := keeping(t)
	revision.Data.Raw = bytes.Replace(revision.Data.Raw, []byte(`"addons"`), []byte(`"later":true,"addons"`), 1)
	_, err := h.Keep(t.Context(), s, s, nil, []appsv1.ControllerRevision{*revision})
	if unknown, ok := errors.AsType[*failure.Error](err); !ok || unknown.Reason != addonsv1.UnknownFieldsReason {
		t.Errorf("got %v", err)
	}
}
