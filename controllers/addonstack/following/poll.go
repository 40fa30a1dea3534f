// SPDX-License-Identifier: Apache-2.0

package following

import (
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// SharedAnswers is how old an answer may be that was given for another stack.
const SharedAnswers = 30 * time.Second

// Poll asks the sources of one stack for newer versions, and has their answers.
//
// Key: the stack.
// Bound: the parts of the stack that follow versions.
// Lost with it: they are asked once more. What was taken is in the revisions.
type Poll struct {
	Trigger Trigger
	Source  string           // of the first follower: stacks that have it in common look at the same time
	Results map[string]Found // by follower

	Running   bool
	Next      time.Time        // poll, while none is running
	Begun     time.Time        // the poll that is running
	NotBefore time.Time        // of answers, while running
	Answered  sets.Set[string] // followers whose sources have, while running
}

// Trigger is what starts a poll before its turn when it is another.
type Trigger struct {
	Generation int64
	LookNow    string // the annotation's value that is acted on
	Keys       string // that sources are asked with, and signatures verified
}

// Found is the answer to a poll for one follower.
type Found struct {
	Newest    string    // of its line
	Pin       stack.Pin // of Newest, if it was found good
	Withdrawn string    // the version of the newest revision, if it isn't published any more
	Err       *failure.Error
}

// Plan decides whether to poll now. The answers that an earlier process found for a settled stack
// are good until its next turn. Answers are kept by credentials, so other credentials lead to new
// answers.
func (p *Poll) Plan(s *addonsv1.AddonStack, t Trigger, now time.Time, settled bool) {
	first, last := p.Results == nil, p.Trigger
	p.Trigger = t
	switch {
	case first && settled:
		p.Results = map[string]Found{}
		p.Next = stack.NextPoll(p.Source, s.Spec.Updates, now)
	case first, t.Generation != last.Generation:
		p.Results = map[string]Found{}
		p.begin(now, SharedAnswers)
	case t.LookNow != last.LookNow:
		p.begin(now, 0)
	case t.Keys != last.Keys, !p.Running && !now.Before(p.Next):
		p.begin(now, SharedAnswers)
	}
}

// begin starts a poll. Answers that were given for others may have some age.
func (p *Poll) begin(now time.Time, age time.Duration) {
	p.Running, p.Answered, p.Begun, p.NotBefore = true, sets.New[string](), now, now.Add(-age)
}

// Finish plans the next poll, after one that came to an end. After a failure it comes sooner, and soon while no version is
// known yet. Sources bound their requests themselves: a poll that comes too early repeats the error.
func (p *Poll) Finish(s *addonsv1.AddonStack, now time.Time, waiting bool) {
	p.Running, p.Next = false, stack.NextPoll(p.Source, s.Spec.Updates, now)
	for _, result := range p.Results {
		if result.Err == nil {
			continue
		}
		pause := max(result.Err.RetryAfter, retry.Follower)
		if waiting {
			pause = min(max(result.Err.RetryAfter, time.Second), retry.Source)
		}
		if again := now.Add(pause); again.Before(p.Next) {
			p.Next = again
		}
	}
}

// Pause returns how long there is nothing to do.
func (p *Poll) Pause(now time.Time) time.Duration {
	if p.Running {
		return retry.Source // answers are on their way, and wake the stack
	}
	return max(p.Next.Sub(now), time.Millisecond)
}
