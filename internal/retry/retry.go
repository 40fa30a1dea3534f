// SPDX-License-Identifier: Apache-2.0

// Package retry has the times after which something is tried again, in one place: for what failed, and for what no
// event tells of. An event comes first where there is one.
package retry

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Times are the pauses after failures in a row. Each is twice as long as the one before.
type Times struct{ First, Longest time.Duration }

// After returns the pause that follows so many earlier ones.
func (t Times) After(earlier int) time.Duration { return min(t.First<<min(earlier, 16), t.Longest) }

// Pauses that grow while something fails.
var (
	Reconcile   = Times{200 * time.Millisecond, 2 * time.Minute} // a reconcile, so that no object keeps a worker busy
	Delivery    = Times{10 * time.Second, 5 * time.Minute}       // an add-on that can't be delivered
	Install     = Times{10 * time.Second, 5 * time.Minute}       // an installation whose release record doesn't stay
	Condition   = Times{time.Second, 30 * time.Second}           // a condition that doesn't hold: the least and the most
	Contest     = Times{30 * time.Second, 30 * time.Minute}      // a field that others set whenever it is repaired
	Rendering   = Times{time.Minute, time.Hour}                  // a rendering that a worker was killed for
	Unavailable = Times{time.Second, 15 * time.Second}           // a source that may be back at any time
	NotFound    = Times{time.Second, time.Minute}                // content that may be published at any time
	Refused     = Times{time.Second, 5 * time.Minute}            // all of a source that somebody has to fix
)

// Pauses that grow, and that a fleet doesn't take in step.
var (
	// Watch is for a list or watch of release records, or of CRDs.
	Watch = wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 1, Steps: 5, Cap: 30 * time.Second}
	// Objects is for a watch by which drift is found. It stays below the time in which people expect that.
	Objects = wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 5, Cap: 10 * time.Second}
	// Waiting is for a watch of objects that a delivery waits for.
	Waiting = wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.5, Steps: 6, Cap: 30 * time.Second}
	// Kinds is for a look for kinds, while CRDs change and no kind comes or goes.
	Kinds = wait.Backoff{Duration: 10 * time.Second, Factor: 2, Steps: 6, Cap: 5 * time.Minute}
	// Race is for an object that a controller wrote to in the same moment, as it took in the change.
	Race = wait.Backoff{Duration: 25 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 6}
)

// Pauses that are the same each time.
const (
	Moment      = time.Second           // what mostly is so a moment later, as a kind that is served
	Unlabelled  = 2 * time.Second       // an object without the label that is watched, until it is gone
	Hook        = 2 * time.Second       // a question of Cluster API that is answered by "not yet"
	Webhook     = 5 * time.Second       // a request that a webhook of the cluster refused
	Room        = 5 * time.Second       // a slow cluster for which there is no room
	Unanswered  = 5 * time.Second       // a comparison that the cluster didn't answer
	Credentials = 10 * time.Second      // the instance's own credentials, which may change without an event
	Record      = 10 * time.Second      // the record of an installation, if its watch doesn't show it
	Source      = 15 * time.Second      // a stack whose source can't say when, or that waits for a version
	Policy      = 30 * time.Second      // a signature policy that can't be used
	Tracker     = 30 * time.Second      // a delivery whose objects can't be watched
	Follower    = time.Minute           // versions that can't be looked for, while clusters have one
	Answer      = time.Minute           // an answer of a source that wakes whoever waits
	Panic       = 3 * time.Minute       // an add-on that led to a panic
	Deletion    = 5 * time.Minute       // deleted objects, which may have left the watch
	Unwatchable = 5 * time.Minute       // a kind that can't be watched
	Cache       = 50 * time.Millisecond // a cache that is behind an own write
)

// Sooner returns the shorter time of two, of which zero is none.
func Sooner(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return max(b, 0)
	}
	return a
}
