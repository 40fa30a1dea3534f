// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// sharedAnswers is how old an answer may be that was given for another stack.
const sharedAnswers = 30 * time.Second

// versionPoll is what the sources of one stack are asked for newer versions, and what they
// answered. It ends with the process: what was taken is in the revisions.
type versionPoll struct {
	trigger trigger
	results map[string]pollResult // by follower

	running   bool
	next      time.Time        // poll, while none is running
	begun     time.Time        // the poll that is running
	notBefore time.Time        // of answers, while running
	answered  sets.Set[string] // followers whose sources have, while running
}

// trigger is what starts a poll before its turn when it is another.
type trigger struct {
	generation int64
	lookNow    string // the annotation's value that is acted on
	keys       string // that sources are asked with, and signatures verified
}

// pollResult is what polling came to for one follower.
type pollResult struct {
	newest    string    // of its line
	pin       stack.Pin // of newest, if it was found good
	withdrawn string    // the version of the newest revision, if it isn't published any more
	err       *failure.Error
}

// plan decides whether to poll now. The answers that an earlier process found for a settled stack
// are good until its next turn. Answers are kept by credentials, so other credentials lead to new
// answers.
func (p *versionPoll) plan(s *addonsv1.AddonStack, t trigger, now time.Time, settled bool) {
	first, last := p.results == nil, p.trigger
	p.trigger = t
	switch {
	case first && settled:
		p.results = map[string]pollResult{}
		p.next = stack.NextPoll(s.UID, s.Spec.Updates, now)
	case first, t.generation != last.generation:
		p.results = map[string]pollResult{}
		p.begin(now, sharedAnswers)
	case t.lookNow != last.lookNow:
		p.begin(now, 0)
	case t.keys != last.keys, !p.running && !now.Before(p.next):
		p.begin(now, sharedAnswers)
	}
}

// begin starts a poll. Answers that were given for others may have some age.
func (p *versionPoll) begin(now time.Time, age time.Duration) {
	p.running, p.answered, p.begun, p.notBefore = true, sets.New[string](), now, now.Add(-age)
}

// finish plans the next poll, after one that came to an end. After a failure it comes sooner, and soon while no version is
// known yet. Sources bound their requests themselves: a poll that comes too early repeats the error.
func (p *versionPoll) finish(s *addonsv1.AddonStack, now time.Time, waiting bool) {
	p.running, p.next = false, stack.NextPoll(s.UID, s.Spec.Updates, now)
	for _, result := range p.results {
		if result.err == nil {
			continue
		}
		pause := max(result.err.RetryAfter, retry.Follower)
		if waiting {
			pause = min(max(result.err.RetryAfter, time.Second), retry.Source)
		}
		if again := now.Add(pause); again.Before(p.next) {
			p.next = again
		}
	}
}

// pause returns how long there is nothing to do.
func (p *versionPoll) pause(now time.Time) time.Duration {
	if p.running {
		return retry.Source // answers are on their way, and wake the stack
	}
	return max(p.next.Sub(now), time.Millisecond)
}
