// SPDX-License-Identifier: Apache-2.0

// Package outcome has why a step of a delivery ends before it is done. Steps return it as a value: the run knows the revision and the
// phase, and makes the add-on's outcome of it.
package outcome

import (
	"cmp"
	"time"

	"k8s.io/utils/clock"

	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// Reasons of steps. They are stable API.
const (
	// ReasonRunningHook: a hook's Job or Pod is running.
	ReasonRunningHook = "RunningHook"
	// ReasonWaitingForObjects: objects aren't ready yet, or are yet to be applied once another add-on has gone on.
	ReasonWaitingForObjects = "WaitingForObjects"
	// ReasonWaitingForPostcondition: a condition of postconditions doesn't hold.
	ReasonWaitingForPostcondition = "WaitingForPostcondition"
	// ReasonObjectFailed: an object says that it failed.
	ReasonObjectFailed = "ObjectFailed"
	// ReasonReadinessTimeout: objects didn't become ready in time.
	ReasonReadinessTimeout = "ReadinessTimeout"
	// ReasonHookFailed: a hook failed, or didn't finish in time.
	ReasonHookFailed = "HookFailed"
	// ReasonPruneFailed: an object couldn't be deleted.
	ReasonPruneFailed = "PruneFailed"
)

// Kind is what a Stop means for the revision.
type Kind int

const (
	// Done: the step isn't stopped.
	Done Kind = iota
	// Waiting for what an event will tell about, or the time.
	Waiting
	// Failing: the revision has failed. Only an event, or a change, leads to more, or the time as where no watch tells.
	Failing
	// Retried: the revision has failed, and is tried again after a while.
	Retried
	// Noted: the same, and its record says so already.
	Noted
)

// Stop is why a step ends before it is done, zero if it is done.
type Stop struct {
	Kind            Kind
	Reason, Message string
	// After is when to look again at the latest, zero if an event will tell.
	After time.Duration
	// StillFailing says that the revision counts as failed while it waits.
	StillFailing bool
}

// Is reports whether the step isn't done.
func (s Stop) Is() bool { return s.Kind != Done }

// Wait waits for what an event will tell about, or the time.
func Wait(reason, message string, after time.Duration) Stop {
	return Stop{Kind: Waiting, Reason: reason, Message: message, After: after}
}

// Fail says that the revision has failed, and when to look again where no watch tells.
func Fail(reason, message string, after time.Duration) Stop {
	return Stop{Kind: Failing, Reason: reason, Message: message, After: after}
}

// Patience is how long a step waits for what may come by itself.
type Patience struct {
	// Since is when that began, zero if the step isn't stopped. It stays from call to call.
	Since    *time.Time
	Deadline time.Duration
	Clock    clock.PassiveClock
}

// End says that nothing is waited for.
func (p Patience) End() { *p.Since = time.Time{} }

// IsOver reports whether nobody waits for an object that failed: it is rejected, or its step has waited longer than the
// deadline for what may come by itself.
func (p Patience) IsOver(f *object.Failure) bool {
	if f.Kind == object.Deferred {
		now := p.Clock.Now()
		*p.Since = cmp.Or(*p.Since, now)
		return now.Sub(*p.Since) >= p.Deadline
	}
	return f.Kind == object.Rejected
}

// StopFor returns what a failure of objects, which may be nil, means for a step. A rejection has the object's own reason if none is
// given. So has what doesn't come by itself within the deadline. The error is a transient failure's.
func (p Patience) StopFor(f *object.Failure, rejection string) (Stop, error) {
	switch {
	case f == nil:
		return Stop{}, nil
	case f.Kind == object.Transient:
		return Stop{}, f.Unwrap()
	case p.IsOver(f):
		return Stop{Kind: Retried, Reason: cmp.Or(rejection, f.Reason), Message: f.Message}, nil
	}
	return Wait(f.Reason, "Waiting: "+f.Message, retry.Webhook), nil
}
