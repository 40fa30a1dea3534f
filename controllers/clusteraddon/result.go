// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/workload"
	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// followUp is what a step leaves to the steps after it, and to the next reconcile.
type followUp struct {
	// unreachable says that the cluster doesn't answer any more: no use in asking it more.
	unreachable bool
	// retryAfter is when to look again at the latest; zero if an event will tell.
	retryAfter time.Duration
	// err has the reconcile tried again with backoff.
	err error
}

// and returns what is left by both.
func (f followUp) and(other followUp) followUp {
	return followUp{
		unreachable: f.unreachable || other.unreachable,
		retryAfter:  retry.Sooner(f.retryAfter, other.retryAfter),
		err:         errors.Join(f.err, other.err),
	}
}

// until returns the time until a deadline, as retry.Sooner takes it: zero if there is no deadline.
func until(deadline, now time.Time) time.Duration {
	if deadline.IsZero() {
		return 0
	}
	return max(deadline.Sub(now), time.Millisecond)
}

// addonResult is what came of one add-on.
type addonResult struct {
	followUp
	status  addonsv1.AddonStatus
	applied bool // all of its objects were, in this reconcile
	tried   bool // each of its objects was
	gone    bool // it was removed, and has no status
	// requestErr is of a request of a repair.
	requestErr error
	// found is how the objects were found, if it became Ready in this reconcile
	found map[deliver.ObjectKey]observe.Status
}

// saidIn returns the words of a status.
func saidIn(status addonsv1.AddonStatus) decide.Said {
	return decide.Said{Phase: status.Phase, Reason: status.Reason, Message: status.Message}
}

// say puts words into the result's status.
func (r *addonResult) say(is decide.Said) {
	r.status.Phase, r.status.Reason, r.status.Message = is.Phase, is.Reason, shorten(is.Message)
}

// because returns the result of an add-on that doesn't go on, in the phase of the reason.
func because(status addonsv1.AddonStatus, reason, message string) addonResult {
	status.Phase, status.Reason, status.Message = reasons.Of(reason).Phase(), reason, shorten(message)
	return addonResult{status: status}
}

// delivered returns the result of what the deliverer did.
func delivered(outcome deliver.Outcome, status addonsv1.AddonStatus) addonResult {
	status.Phase, status.Reason, status.Message = outcome.Phase, outcome.Reason, shorten(outcome.Message)
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
	return addonResult{
		status: status, applied: outcome.Applied, tried: outcome.Tried, found: outcome.Found, followUp: followUp{retryAfter: outcome.RetryAfter},
	}
}

// result is what came of several add-ons.
type result struct {
	followUp
	statuses []addonsv1.AddonStatus
}

func (r *result) add(one addonResult) {
	r.followUp = r.and(one.followUp)
	if !one.gone {
		r.statuses = append(r.statuses, one.status)
	}
}

// requestFailed returns the result of a failed request that is tried again. Details that differ
// each time, as ports and versions, go to the log.
func requestFailed(err error, previous addonsv1.AddonStatus) addonResult {
	one := addonResult{status: previous, followUp: followUp{err: fmt.Errorf("add-on %s: %w", previous.Name, err)}}
	one.status.Reason = reasons.Retrying
	answer := apierrors.APIStatus(nil)
	limit, exceeded := errors.AsType[*fleet.LimitError](err)
	switch {
	case exceeded:
		one.unreachable = limit.Discovery
		one.status.Reason = limit.Reason
		text := limit.Message
		if limit.Reason != deliver.ReasonWaitingForMemory {
			text += ". See what answers in the API server's place"
		}
		one.status.Message = shorten(text + "; trying again")
	case apierrors.IsConflict(err):
		one.status.Message = "Another write came first; trying again"
	case errors.As(err, &answer):
		one.status.Message = shorten(fmt.Sprintf("The cluster answered %q; trying again", answer.Status().Message))
	case workload.IsUnreachable(err):
		one.unreachable = true
		one.status.Message = "The cluster didn't answer; trying again. The manager's log has the request"
	default:
		one.status.Message = "A request failed before it was sent, or its answer can't be read; trying again. The manager's log has the error"
	}
	return one
}

// upgradeFailed returns the result of a change that didn't get into the cluster.
func upgradeFailed(err error, previous addonsv1.AddonStatus) addonResult {
	one := requestFailed(err, previous)
	if one.status.Phase == addonsv1.AddonReady {
		one.status.Phase = addonsv1.AddonUpgrading
	}
	return one
}
