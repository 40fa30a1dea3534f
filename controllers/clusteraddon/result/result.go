// SPDX-License-Identifier: Apache-2.0

// Package result has what came of the add-ons of a cluster in a reconcile: their statuses, and what follows from them.
package result

import (
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/workload"
	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// FollowUp is what a step leaves to the steps after it, and to the next reconcile.
type FollowUp struct {
	// Unreachable says that the cluster doesn't answer any more: no use in asking it more.
	Unreachable bool
	// RetryAfter is when to look again at the latest; zero if an event will tell.
	RetryAfter time.Duration
	// Err has the reconcile tried again with backoff.
	Err error
}

// And returns what is left by both.
func (f FollowUp) And(other FollowUp) FollowUp {
	return FollowUp{
		Unreachable: f.Unreachable || other.Unreachable,
		RetryAfter:  retry.Sooner(f.RetryAfter, other.RetryAfter),
		Err:         errors.Join(f.Err, other.Err),
	}
}

// Until returns the time until a deadline, as retry.Sooner takes it: zero if there is no deadline.
func Until(deadline, now time.Time) time.Duration {
	if deadline.IsZero() {
		return 0
	}
	return max(deadline.Sub(now), time.Millisecond)
}

// Addon is what came of one add-on.
type Addon struct {
	FollowUp
	Deeds
	Status  addonsv1.AddonStatus
	Applied bool // all of its objects were, in this reconcile
	Tried   bool // each of its objects was
	Gone    bool // it was removed, and has no status
	// Found is how the objects were found, if it became Ready in this reconcile.
	Found map[deliver.ObjectKey]observe.Status
}

// Say puts words into the result's status.
func (r *Addon) Say(is decide.Said) {
	r.Status.Phase, r.Status.Reason, r.Status.Message = is.Phase, is.Reason, Shorten(is.Message)
}

// All is what came of several add-ons.
type All struct {
	FollowUp
	Deeds
	Statuses []addonsv1.AddonStatus
}

// Add takes in what came of one add-on.
func (r *All) Add(one Addon) {
	r.FollowUp, r.Deeds = r.And(one.FollowUp), r.with(one.Deeds)
	if !one.Gone {
		r.Statuses = append(r.Statuses, one.Status)
	}
}

// WithoutServiceAccount is why an add-on without a ServiceAccount is left as it is.
const WithoutServiceAccount = "This provider instance delivers with the rights of ServiceAccounts alone (--require-impersonation). " +
	"Set spec.serviceAccountName of the AddonStack; the add-on is left as it is"

// Shorten keeps a message within the API's limit.
func Shorten(text string) string { return message.Shorten(text, 1024) }

// SaidIn returns the words of a status.
func SaidIn(status addonsv1.AddonStatus) decide.Said {
	return decide.Said{Phase: status.Phase, Reason: status.Reason, Message: status.Message}
}

// IndexOf returns where the status of the same add-on of the same stack is, -1 if it isn't there.
func IndexOf(all []addonsv1.AddonStatus, status addonsv1.AddonStatus) int {
	return slices.IndexFunc(all, func(s addonsv1.AddonStatus) bool {
		return s.Name == status.Name && s.Namespace == status.Namespace && s.Stack == status.Stack
	})
}

// Previous returns the add-on's last status, or the given one, Pending, if it had none.
func Previous(all []addonsv1.AddonStatus, status addonsv1.AddonStatus) addonsv1.AddonStatus {
	if at := IndexOf(all, status); at >= 0 {
		return all[at]
	}
	if status.Phase == "" {
		status.Phase = addonsv1.AddonPending
	}
	return status
}

// Because returns the result of an add-on that doesn't go on, in the phase of the reason.
func Because(status addonsv1.AddonStatus, reason, text string) Addon {
	one := Addon{Status: status}
	one.Say(decide.Said{Phase: reasons.Of(reason).Phase(), Reason: reason, Message: text})
	return one
}

// Delivered returns the result of what the deliverer did.
func Delivered(outcome deliver.Outcome, status addonsv1.AddonStatus) Addon {
	status.Phase, status.Reason, status.Message = outcome.Phase, outcome.Reason, Shorten(outcome.Message)
	if outcome.Phase == addonsv1.AddonReady {
		status.Reason = "" // as of one that was found ready
	}
	if outcome.Version != "" {
		status.Version = outcome.Version
	}
	if outcome.Revision != 0 {
		status.Revision = outcome.Revision
		status.Objects = nil
		if !outcome.Untouched {
			status.Objects = &addonsv1.ObjectCounts{Total: outcome.Total, Ready: outcome.Ready}
		}
	}
	return Addon{Status: status, Applied: outcome.Applied, Tried: outcome.Tried, Found: outcome.Found, FollowUp: FollowUp{RetryAfter: outcome.RetryAfter}}
}

// RequestFailed returns the result of a failed request that is tried again. Details that differ
// each time, as ports and versions, go to the log.
func RequestFailed(err error, previous addonsv1.AddonStatus) Addon {
	one := Addon{Status: previous, FollowUp: FollowUp{Err: fmt.Errorf("add-on %s: %w", previous.Name, err)}}
	one.Status.Reason = reasons.Retrying
	answer := apierrors.APIStatus(nil)
	limit, exceeded := errors.AsType[*fleet.LimitError](err)
	switch {
	case exceeded:
		one.Unreachable = limit.Discovery
		one.Status.Reason = limit.Reason
		text := limit.Message
		if limit.Reason != deliver.ReasonWaitingForMemory {
			text += ". See what answers in the API server's place"
		}
		one.Status.Message = Shorten(text + "; trying again")
	case apierrors.IsConflict(err):
		one.Status.Message = "Another write came first; trying again"
	case errors.As(err, &answer):
		one.Status.Message = Shorten(fmt.Sprintf("The cluster answered %q; trying again", answer.Status().Message))
	case workload.IsUnreachable(err):
		one.Unreachable = true
		one.Status.Message = "The cluster didn't answer; trying again. The manager's log has the request"
	default:
		one.Status.Message = "A request failed before it was sent, or its answer can't be read; trying again. The manager's log has the error"
	}
	return one
}

// UpgradeFailed returns the result of a change that didn't get into the cluster.
func UpgradeFailed(err error, previous addonsv1.AddonStatus) Addon {
	one := RequestFailed(err, previous)
	if one.Status.Phase == addonsv1.AddonReady {
		one.Status.Phase = addonsv1.AddonUpgrading
	}
	return one
}

// DescribePhase returns the phase, and the reason if that says more.
func DescribePhase(s *addonsv1.AddonStatus) string {
	if s.Reason == "" || s.Reason == string(s.Phase) {
		return string(s.Phase)
	}
	return fmt.Sprintf("%s, %s", s.Phase, s.Reason)
}
