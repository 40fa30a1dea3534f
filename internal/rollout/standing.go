// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"time"

	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// standing is where a cluster is on the way to the target.
type standing int

const (
	waits    standing = iota // it hasn't started
	inFlight                 // it has started, and isn't ready yet
	done                     // it is ready at the target
	failed                   // it was ready before, and isn't at the target
	broken                   // it wasn't ready before either
	away                     // nothing can be done there
)

const (
	// lostAfter is how long a cluster that answered when it started may be silent before it counts as failed: the
	// change may have cut it off.
	lostAfter = 10 * time.Minute
	// failedAfter is how long an add-on has to have failed before its cluster counts as failed: it is tried again
	// meanwhile.
	failedAfter = time.Minute
)

// standingOf returns where a cluster is, and when time alone changes that; zero if it doesn't.
func (in *Input) standingOf(c *Cluster) (standing, time.Time) {
	switch {
	case c.Assigned != in.Target && c.Away != "":
		return away, time.Time{}
	case c.Assigned != in.Target:
		return waits, time.Time{}
	case c.Away != "" && c.wasCutOff():
		return in.until(c.AwaySince.Add(lostAfter), failed)
	case c.Away != "":
		return away, time.Time{}
	case c.State == addonsv1.StackReady:
		return done, time.Time{}
	case c.Started.IsZero():
		return inFlight, time.Time{}
	}
	bad := failed
	if !c.WasReady {
		bad = broken
	}
	late := c.Started.Add(in.Strategy.ReadyWithin)
	switch c.State {
	case addonsv1.StackDegraded: // that lasts already
		return bad, time.Time{}
	case addonsv1.StackFailed:
		if certain := c.Since.Add(failedAfter); certain.Before(late) {
			late = certain
		}
	}
	return in.until(late, bad)
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

// until returns that a cluster is in flight until a time, and something else then.
func (in *Input) until(end time.Time, then standing) (standing, time.Time) {
	if in.Now.Before(end) {
		return inFlight, end
	}
	return then, time.Time{}
}

// wasCutOff reports whether a cluster fell silent after it had started, and before it was ready.
func (c *Cluster) wasCutOff() bool {
	return c.Unreachable && c.WasReady && c.State != addonsv1.StackReady && !c.Started.IsZero() && c.AwaySince.After(c.Started)
}
