// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/stack"
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

func TestPlan(t *testing.T) {
	s := followingStack()
	now := time.Unix(1e9, 0)
	same := trigger{generation: 1, lookNow: "a", keys: "1"}
	known := map[string]pollResult{"web": {newest: "1.4.2"}}
	later := now.Add(time.Minute)
	for name, tc := range map[string]struct {
		before  versionPoll
		trigger trigger
		settled bool
		running bool
		age     time.Duration // of answers
		forgets bool          // what was found before
	}{
		"a new stack":                  {trigger: same, running: true, age: sharedAnswers, forgets: true},
		"a restart of a settled stack": {trigger: same, settled: true, forgets: true},
		"its turn is later":            {before: versionPoll{trigger: same, results: known, next: later}, trigger: same},
		"it is its turn":               {before: versionPoll{trigger: same, results: known, next: now}, trigger: same, running: true, age: sharedAnswers},
		"another spec": {
			before: versionPoll{trigger: same, results: known, next: later}, trigger: trigger{generation: 2, lookNow: "a", keys: "1"},
			running: true, age: sharedAnswers, forgets: true,
		},
		"somebody asks": {before: versionPoll{trigger: same, results: known, next: later}, trigger: trigger{generation: 1, lookNow: "b", keys: "1"}, running: true},
		"other keys": {
			before: versionPoll{trigger: same, results: known, next: later}, trigger: trigger{generation: 1, lookNow: "a", keys: "2"},
			running: true, age: sharedAnswers,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := tc.before
			p.plan(s, tc.trigger, now, tc.settled)
			if p.running != tc.running || tc.running && !p.notBefore.Equal(now.Add(-tc.age)) || (len(p.results) == 0) != tc.forgets {
				t.Errorf("got %+v", p)
			}
			if turn := stack.NextPoll(s.UID, nil, now); tc.settled && !p.next.Equal(turn) {
				t.Errorf("the next poll is at %s, want the stack's own turn, %s", p.next, turn)
			}
			again := p
			if again.plan(s, tc.trigger, now.Add(time.Second), tc.settled); again.running != tc.running || !again.begun.Equal(p.begun) {
				t.Errorf("without anything new it begins again: %+v", again)
			}
		})
	}
}

func TestPollEndsWhenAllHaveAnswered(t *testing.T) {
	s := followingStack()
	p := versionPoll{trigger: trigger{generation: 1}, results: map[string]pollResult{}, running: true, answered: sets.New("web")}
	now := time.Unix(1e9, 0)
	if p.plan(s, p.trigger, now, true); !p.running || !p.answered.Has("web") || p.pause(now) != retry.Source {
		t.Errorf("it begins again: %+v", p)
	}
	turn := stack.NextPoll(s.UID, nil, now)
	p.finish(s, turn, false)
	if p.running || p.pause(turn) != addonsv1.DefaultUpdateInterval {
		t.Errorf("got %+v, want the next poll at the next turn", p)
	}
}

func TestPauseAfterAFailure(t *testing.T) {
	s := followingStack()
	now := stack.NextPoll(s.UID, nil, time.Unix(1e9, 0))
	for name, tc := range map[string]struct {
		after   time.Duration
		waiting bool
		want    time.Duration
	}{
		"a fleet has time":                          {2 * time.Second, false, retry.Follower},
		"a host that asks for peace gets it":        {5 * time.Minute, false, 5 * time.Minute},
		"but no more than until the next turn":      {time.Hour, false, addonsv1.DefaultUpdateInterval},
		"a new stack waits":                         {2 * time.Second, true, 2 * time.Second},
		"a new stack sees corrected credentials":    {5 * time.Minute, true, retry.Source},
		"a new stack of a source that says nothing": {0, true, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			p := &versionPoll{running: true, results: map[string]pollResult{"web": {err: &failure.Error{Reason: "X", Err: errors.New("x"), RetryAfter: tc.after}}}}
			p.finish(s, now, tc.waiting)
			if got := p.pause(now); got != tc.want {
				t.Errorf("again after %s, want %s", got, tc.want)
			}
		})
	}
}
