// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// Times between looks that failed. Sources bound their requests themselves: a look
// that comes too early repeats the error.
const (
	// lookingAnyway is when a stack comes back that nothing has woken.
	lookingAnyway = 15 * time.Second
	// waitingRetry is the most while no version is known yet: somebody waits for it.
	waitingRetry = 15 * time.Second
	// followingRetry is the least while clusters have a version.
	followingRetry = time.Minute
	// sharedAnswers is how old an answer may be that was given for another stack.
	sharedAnswers = 30 * time.Second
)

// outlooks are what the sources of stacks were found to have. They end with the
// process: what was taken is in the revisions.
type outlooks struct {
	mu sync.Mutex
	of map[client.ObjectKey]*outlook
	// rotations are when keys were first seen that stacks have now. What was found since
	// then with the same ones does for all of them.
	rotations map[string]time.Time
}

// outlook of one stack. One reconcile at a time uses it.
type outlook struct {
	uid        types.UID
	generation int64
	lookNow    string // the annotation's value
	keys       string // that sources are asked with, and signatures verified

	looking   bool
	asked     bool             // all sources, while looking
	answered  sets.Set[string] // followers whose sources have, while looking
	notBefore time.Time        // of answers, while looking
	begun     time.Time        // looking
	next      time.Time        // look, while not looking
	found     map[string]finding
}

// finding is what looking came to for one follower.
type finding struct {
	newest    string    // of its line
	pin       stack.Pin // of newest, if it was found good
	withdrawn string    // the version of the newest revision, if it isn't published any more
	err       *failure.Error
}

// get returns the outlook of a stack, an empty one if nothing was looked at yet.
func (o *outlooks) get(s *addonsv1.AddonStack) *outlook {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := client.ObjectKeyFromObject(s)
	if known := o.of[key]; known != nil && known.uid == s.UID {
		return known
	}
	if o.of == nil {
		o.of = map[client.ObjectKey]*outlook{}
	}
	o.of[key] = &outlook{uid: s.UID}
	return o.of[key]
}

func (o *outlooks) forget(key client.ObjectKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.of, key)
}

// plan decides whether to look now.
func (o *outlooks) plan(s *addonsv1.AddonStack, keys string, now time.Time, settled bool) *outlook {
	of := o.get(s)
	since := now
	if of.keys != keys {
		since = o.rotated(keys, now)
	}
	of.plan(s, keys, since, now, settled)
	return of
}

// rotated says when the keys were seen first, of late.
func (o *outlooks) rotated(keys string, now time.Time) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.rotations == nil {
		o.rotations = map[string]time.Time{}
	}
	maps.DeleteFunc(o.rotations, func(_ string, seen time.Time) bool { return now.Sub(seen) > sharedAnswers })
	if _, known := o.rotations[keys]; !known {
		o.rotations[keys] = now
	}
	return o.rotations[keys]
}

// plan decides whether to look now. What a settled stack follows was found by an
// earlier process: that is good until its next turn. With other credentials or keys
// what failed may do, and what did may fail; that they are others is known since then.
func (o *outlook) plan(s *addonsv1.AddonStack, keys string, since, now time.Time, settled bool) {
	first, rotated := o.found == nil, o.keys != keys
	o.keys = keys
	changed, asked := o.generation != s.Generation, o.lookNow != s.Annotations[addonsv1.LookNowAnnotation]
	o.generation, o.lookNow = s.Generation, s.Annotations[addonsv1.LookNowAnnotation]
	switch {
	case first && settled:
		o.found = map[string]finding{}
		o.next = stack.ScheduleOf(s.UID, s.Spec.Updates).Next(now)
	case first, changed:
		o.found = map[string]finding{}
		o.begin(now, sharedAnswers)
	case asked:
		o.begin(now, 0)
	case rotated:
		o.begin(now, now.Sub(since))
	case !o.looking && !now.Before(o.next):
		o.begin(now, sharedAnswers)
	}
}

// begin to look. Answers that were given for others may have some age.
func (o *outlook) begin(now time.Time, age time.Duration) {
	o.looking, o.asked, o.answered, o.begun, o.notBefore = true, false, sets.New[string](), now, now.Add(-age)
}

// finish plans the next look, after one that came to an end.
func (o *outlook) finish(s *addonsv1.AddonStack, now time.Time, waiting bool) {
	schedule := stack.ScheduleOf(s.UID, s.Spec.Updates)
	o.looking, o.next = false, schedule.Next(now)
	for _, f := range o.found {
		if f.err == nil {
			continue
		}
		retry := min(max(f.err.RetryAfter, followingRetry), schedule.Interval())
		if waiting {
			retry = min(max(f.err.RetryAfter, time.Second), waitingRetry)
		}
		if again := now.Add(retry); again.Before(o.next) {
			o.next = again
		}
	}
}

// again is how long there is nothing to look at.
func (o *outlook) again(now time.Time) time.Duration {
	if o.looking {
		return lookingAnyway // answers are on their way, and wake the stack
	}
	return max(o.next.Sub(now), time.Millisecond)
}
