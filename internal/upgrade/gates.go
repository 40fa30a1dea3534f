// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/message"
)

// Hold says how long an upgrade waits for something.
type Hold struct {
	Time time.Duration
	// Forever says that the upgrade doesn't go on after that time.
	Forever bool
}

// HoldOf returns that of a stack.
func HoldOf(l *addonsv1.StackLifecycle) Hold {
	h := Hold{Time: addonsv1.DefaultHoldSeconds * time.Second}
	if l != nil && l.HoldSeconds != nil {
		h.Time = time.Duration(*l.HoldSeconds) * time.Second
	}
	h.Forever = l != nil && l.AfterHold == addonsv1.AfterHoldHold && h.Time > 0
	return h
}

// Cause is something that an upgrade waits for.
type Cause struct {
	// Addon is the name of the one that it waits for; "" if it is none.
	Addon string
	// Point at which it waits.
	Point addonsv1.UpgradePoint
	// Reason is one of [addonsv1.UpgradeGate].
	Reason string
	// Message says what it is, and the way out.
	Message string
	Hold    Hold
}

// Closed is what no time fixes.
type Closed struct {
	// Reason is one of [addonsv1.UpgradeGate].
	Reason  string
	Message string
}

// Causes are all that keeps an upgrade from going on.
type Causes struct {
	Waiting []Cause
	// Closed says why an add-on isn't for a version on the way; zero if all are.
	Closed Closed
	// Skip says that nothing is to keep it.
	Skip bool
}

// Gates returns the gates at which the upgrade is now. The previous gates tell since when.
func (u *Upgrade) Gates(causes Causes, before *addonsv1.ClusterUpgrade, now time.Time) []addonsv1.UpgradeGate {
	var gates []addonsv1.UpgradeGate
	if u.AtControlPlane() {
		gates = append(gates, u.gate(addonsv1.UpgradeBeforeControlPlane, u.Step, causes, before, now))
	} else if gate := u.passed(causes.Skip, before, now); gate != nil {
		gates = append(gates, *gate)
	}
	if u.IsDue(addonsv1.UpgradeAfterControlPlane) {
		gates = append(gates, u.gate(addonsv1.UpgradeAfterControlPlane, u.Reached, causes, before, now))
	}
	if u.IsDue(addonsv1.UpgradeAfterWorkers) {
		gates = append(gates, u.gate(addonsv1.UpgradeAfterWorkers, u.Target, causes, before, now))
	}
	return gates
}

// gate decides the state of one.
func (u *Upgrade) gate(point addonsv1.UpgradePoint, version string, causes Causes, before *addonsv1.ClusterUpgrade, now time.Time) addonsv1.UpgradeGate {
	gate := addonsv1.UpgradeGate{
		Point: point, Version: version, State: addonsv1.GateOpen, Reason: addonsv1.UpgradeAllowedReason, Since: sinceOf(point, version, before, now),
	}
	if point == addonsv1.UpgradeBeforeControlPlane && causes.Closed != (Closed{}) {
		gate.State, gate.Reason, gate.Message = addonsv1.GateClosed, causes.Closed.Reason, causes.Closed.Message
	} else {
		await(&gate, causes.Waiting, now)
	}
	if causes.Skip && !gate.State.IsOpen() {
		gate.Message = fmt.Sprintf("The annotation %s skips this: %s", addonsv1.SkipGatesAnnotation, gate.Message)
		gate.State, gate.Reason, gate.Deadline = addonsv1.GateSkipped, addonsv1.UpgradeGatesSkippedReason, metav1.Time{}
	}
	return gate
}

// passed returns the gate before the control plane if that went on all the same, nil if it didn't.
func (u *Upgrade) passed(skip bool, before *addonsv1.ClusterUpgrade, now time.Time) *addonsv1.UpgradeGate {
	held := GateOf(before, addonsv1.UpgradeBeforeControlPlane, u.Step)
	if skip || held == nil || held.State != addonsv1.GatePassed && mayGoOn(held.State, held.Deadline, now) {
		return nil
	}
	gate := *held
	if gate.State != addonsv1.GatePassed {
		gate.Message = fmt.Sprintf("The control plane went on while this was %s: %s", gate.State, gate.Message)
		gate.State, gate.Reason, gate.Deadline = addonsv1.GatePassed, addonsv1.UpgradeNotAskedReason, metav1.Time{}
	}
	return &gate
}

// mayGoOn reports whether a gate is open, or its deadline has come.
func mayGoOn(state addonsv1.GateState, deadline metav1.Time, now time.Time) bool {
	return state.IsOpen() || !deadline.IsZero() && !now.Before(deadline.Time)
}

// await has a gate wait for the causes of its point, each for as long as its hold says.
func await(gate *addonsv1.UpgradeGate, causes []Cause, now time.Time) {
	var expired, left []string
	var reason string
	var last time.Time // zero if there is none
	forever := false
	for _, cause := range causes {
		if cause.Point != gate.Point || cause.Hold.Time <= 0 {
			continue
		}
		deadline := gate.Since.Add(cause.Hold.Time)
		if !cause.Hold.Forever && !now.Before(deadline) {
			expired = append(expired, cause.Message)
			continue
		}
		left, reason = append(left, cause.Message), cmp.Or(reason, cause.Reason)
		forever = forever || cause.Hold.Forever
		if deadline.After(last) {
			last = deadline
		}
	}
	switch {
	case len(left) > 0:
		gate.State, gate.Reason, gate.Message = addonsv1.GateWaiting, reason, message.FirstFew(left)
		if !forever {
			gate.Deadline = metav1.NewTime(last)
		}
	case len(expired) > 0:
		gate.State, gate.Reason = addonsv1.GateExpired, addonsv1.UpgradeHoldExpiredReason
		gate.Message = "Held long enough, as lifecycle.holdSeconds says: " + message.FirstFew(expired)
	}
}

// sinceOf returns when the upgrade came to a point. In seconds, as the status keeps it.
func sinceOf(point addonsv1.UpgradePoint, version string, before *addonsv1.ClusterUpgrade, now time.Time) metav1.Time {
	if gate := GateOf(before, point, version); gate != nil {
		return gate.Since
	}
	return Since(now)
}

// AtLeast returns a hold that isn't shorter than one which is under way.
func (h Hold) AtLeast(state addonsv1.GateState, since, deadline metav1.Time) Hold {
	return Hold{
		Time:    max(h.Time, deadline.Sub(since.Time)),
		Forever: h.Forever || state == addonsv1.GateWaiting && deadline.IsZero(),
	}
}

// Since returns a time as a status keeps it: in seconds.
func Since(now time.Time) metav1.Time { return metav1.NewTime(now.Truncate(time.Second)) }

// Unseen returns the causes while the cluster doesn't answer. Closed gates stay closed, and none is given up before its
// deadline.
func Unseen(before *addonsv1.ClusterUpgrade, skip bool) Causes {
	causes := Causes{Skip: skip}
	hold := HoldOf(nil)
	if before != nil {
		for _, gate := range before.Gates {
			if gate.State == addonsv1.GateClosed {
				causes.Closed = Closed{gate.Reason, gate.Message}
			}
			hold = hold.AtLeast(gate.State, gate.Since, gate.Deadline)
		}
	}
	for _, point := range []addonsv1.UpgradePoint{addonsv1.UpgradeBeforeControlPlane, addonsv1.UpgradeAfterControlPlane, addonsv1.UpgradeAfterWorkers} {
		causes.Waiting = append(causes.Waiting, Cause{
			Point: point, Reason: addonsv1.UpgradeClusterUnreachableReason, Hold: hold,
			Message: "the cluster doesn't answer, so nobody can see if its add-ons are ready: see the condition ClusterReachable",
		})
	}
	return causes
}
