// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"time"

	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Standing is where a cluster is on the way to the target.
type Standing int

// Standings of a cluster.
const (
	Waits    Standing = iota // it hasn't started
	InFlight                 // it has started, and hasn't been ready for long enough
	Done                     // it is ready at the target
	Failed                   // it was ready before, and isn't at the target
	Broken                   // it wasn't ready before either
	Away                     // nothing can be done there
)

// String returns words for a person.
func (s Standing) String() string {
	return [...]string{"waits", "on its way", "done", "failed", "not ready before either", "away"}[s]
}

// StandsSince returns since when the cluster stands there, zero if it hasn't started.
func (m Member) StandsSince() time.Time {
	switch m.Standing {
	case Waits:
		return time.Time{}
	case InFlight:
		return m.Started
	case Away:
		return m.AwaySince
	}
	return m.Since
}

const (
	// lostAfter is how long a cluster that answered when it started may be silent before it counts as failed: the
	// change may have cut it off.
	lostAfter = 10 * time.Minute
	// failedAfter is how long an add-on has to have failed before its cluster counts as failed: it is tried again
	// meanwhile. Until then no other cluster starts.
	failedAfter = time.Minute
)

// standingOf returns where a cluster is, and when time alone changes that; zero if it doesn't. A cluster that failed at the
// target stays so while it is paused or silent.
func (in *Input) standingOf(c *Cluster) (Standing, time.Time) {
	bad := Failed
	if !c.WasReady {
		bad = Broken
	}
	late := c.Started.Add(in.Strategy.ReadyWithin)
	switch {
	case !in.arrives(c) && c.Away != "":
		return Away, time.Time{}
	case !in.arrives(c):
		return Waits, time.Time{}
	case in.Mode == Returning && !in.returns(c):
		return settled(c), time.Time{}
	case c.State == addonsv1.StackDegraded && c.isFresh(): // that lasts already
		return bad, time.Time{}
	case c.State == addonsv1.StackFailed && c.isFresh():
		if certain := c.Since.Add(failedAfter); certain.Before(late) {
			late = certain
		}
		return in.until(late, bad)
	case c.Away != "" && in.wasCutOff(c):
		return in.until(c.AwaySince.Add(lostAfter), Failed)
	case c.Away != "":
		return Away, time.Time{}
	case c.State == addonsv1.StackReady && in.Mode != Staged:
		return Done, time.Time{}
	case c.State == addonsv1.StackReady:
		return in.until(c.Since.Add(in.Strategy.MinReady), Done)
	case c.Started.IsZero():
		return InFlight, time.Time{}
	}
	return in.until(late, bad)
}

// arrives reports whether a cluster was given what the rollout brings.
func (in *Input) arrives(c *Cluster) bool { return (c.Assigned == in.Target) == (in.Mode != Returning) }

// isFresh reports whether the state of a cluster is about the revision that it is to have.
func (c *Cluster) isFresh() bool { return !c.Started.IsZero() }

// returns reports whether a cluster without the rejected target had it, or may have had it.
func (in *Input) returns(c *Cluster) bool {
	return !c.Started.Before(in.Returned) || c.Started.IsZero()
}

// settled returns where a cluster is that the rollout leaves as it is.
func settled(c *Cluster) Standing {
	if c.State == addonsv1.StackReady {
		return Done
	}
	return Broken
}

// WasReady returns whether a stack that leaves the revision of its status was ready at it. While that isn't known, it is as
// at the revision before; nil if there was none.
func WasReady(left addonsv1.StackStatus) *bool {
	switch left.State {
	case addonsv1.StackReady:
		return ptr.To(true)
	case addonsv1.StackFailed, addonsv1.StackDegraded:
		return ptr.To(false)
	}
	return left.WasReady
}

// Leave returns whether a stack was ready when it leaves the revision of its status for the next one. It also returns the
// revision that it goes back to from there, which it was ready at last. It was ready at a revision that it goes back to.
func Leave(left addonsv1.StackStatus, next string) (wasReady *bool, previous string) {
	switch {
	case next == left.Previous && next != "":
		return ptr.To(true), ""
	case left.State == addonsv1.StackReady:
		return ptr.To(true), left.Revision
	}
	return WasReady(left), left.Previous
}

// until returns that a cluster is in flight until a time, and something else then.
func (in *Input) until(end time.Time, then Standing) (Standing, time.Time) {
	if in.Now.Before(end) {
		return InFlight, end
	}
	return then, time.Time{}
}

// wasCutOff reports whether a cluster fell silent after it had started, and before it was done.
func (in *Input) wasCutOff(c *Cluster) bool {
	isDone := c.State == addonsv1.StackReady && (in.Mode != Staged || c.AwaySince.After(c.Since.Add(in.Strategy.MinReady)))
	return c.Unreachable && c.WasReady && !isDone && !c.Started.IsZero() && c.AwaySince.After(c.Started)
}
