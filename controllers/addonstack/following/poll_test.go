// SPDX-License-Identifier: Apache-2.0

package following_test

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/following"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/test/stacks"
)

func TestPlan(t *testing.T) {
	s := stacks.Following()
	now := time.Unix(1e9, 0)
	same := following.Trigger{Generation: 1, LookNow: "a", Keys: "1"}
	known := map[string]following.Found{"web": {Newest: "1.4.2"}}
	later := now.Add(time.Minute)
	for name, tc := range map[string]struct {
		before  following.Poll
		trigger following.Trigger
		settled bool
		running bool
		age     time.Duration // of answers
		forgets bool          // what was found before
	}{
		"a new stack":                  {trigger: same, running: true, age: following.SharedAnswers, forgets: true},
		"a restart of a settled stack": {trigger: same, settled: true, forgets: true},
		"its turn is later":            {before: following.Poll{Trigger: same, Results: known, Next: later}, trigger: same},
		"it is its turn":               {before: following.Poll{Trigger: same, Results: known, Next: now}, trigger: same, running: true, age: following.SharedAnswers},
		"another spec": {
			before: following.Poll{Trigger: same, Results: known, Next: later}, trigger: following.Trigger{Generation: 2, LookNow: "a", Keys: "1"},
			running: true, age: following.SharedAnswers, forgets: true,
		},
		"somebody asks": {before: following.Poll{Trigger: same, Results: known, Next: later}, trigger: following.Trigger{Generation: 1, LookNow: "b", Keys: "1"}, running: true},
		"other keys": {
			before: following.Poll{Trigger: same, Results: known, Next: later}, trigger: following.Trigger{Generation: 1, LookNow: "a", Keys: "2"},
			running: true, age: following.SharedAnswers,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := tc.before
			p.Plan(s, tc.trigger, now, tc.settled)
			if p.Running != tc.running || tc.running && !p.NotBefore.Equal(now.Add(-tc.age)) || (len(p.Results) == 0) != tc.forgets {
				t.Errorf("got %+v", p)
			}
			if turn := stack.NextPoll("", nil, now); tc.settled && !p.Next.Equal(turn) {
				t.Errorf("the next poll is at %s, want the source's turn, %s", p.Next, turn)
			}
			again := p
			if again.Plan(s, tc.trigger, now.Add(time.Second), tc.settled); again.Running != tc.running || !again.Begun.Equal(p.Begun) {
				t.Errorf("without anything new it begins again: %+v", again)
			}
		})
	}
}

func TestPollEndsWhenAllHaveAnswered(t *testing.T) {
	s := stacks.Following()
	p := following.Poll{Trigger: following.Trigger{Generation: 1}, Results: map[string]following.Found{}, Running: true, Answered: sets.New("web")}
	now := time.Unix(1e9, 0)
	if p.Plan(s, p.Trigger, now, true); !p.Running || !p.Answered.Has("web") || p.Pause(now) != retry.Source {
		t.Errorf("it begins again: %+v", p)
	}
	turn := stack.NextPoll("", nil, now)
	p.Finish(s, turn, false)
	if p.Running || p.Pause(turn) != addonsv1.DefaultUpdateInterval {
		t.Errorf("got %+v, want the next poll at the next turn", p)
	}
}

func TestPauseAfterAFailure(t *testing.T) {
	s := stacks.Following()
	now := stack.NextPoll("", nil, time.Unix(1e9, 0))
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
			p := &following.Poll{Running: true, Results: map[string]following.Found{"web": {Err: &failure.Error{Reason: "X", Err: errors.New("x"), RetryAfter: tc.after}}}}
			p.Finish(s, now, tc.waiting)
			if got := p.Pause(now); got != tc.want {
				t.Errorf("again after %s, want %s", got, tc.want)
			}
		})
	}
}
