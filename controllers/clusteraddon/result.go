// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"errors"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/reasons"
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
		retryAfter:  sooner(f.retryAfter, other.retryAfter),
		err:         errors.Join(f.err, other.err),
	}
}

// sooner returns the shorter time of two, of which zero is none.
func sooner(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return max(b, 0)
	}
	return a
}

// until returns the time until a deadline, as sooner takes it: zero if there is no deadline.
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
	gone    bool // it was removed, and has no status
}

// because returns the result of an add-on that doesn't go on for a reason, in the phase of
// that.
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
		status.Revision, status.Digest = outcome.Revision, outcome.Digest
		status.Objects = &addonsv1.ObjectCounts{Total: outcome.Total, Ready: outcome.Ready}
	}
	return addonResult{status: status, applied: outcome.Applied, followUp: followUp{retryAfter: outcome.RetryAfter}}
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
