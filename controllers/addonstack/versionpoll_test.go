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
