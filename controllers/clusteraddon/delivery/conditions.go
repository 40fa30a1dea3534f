// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"fmt"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/checks"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/inputs"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/rendering"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/result"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
)

// UnmetPrecondition returns what the add-on waits for before it may be installed or
// upgraded; nil if nothing holds it. A revision that has begun isn't held any more.
func UnmetPrecondition(ctx context.Context, r rendering.Renderer, c checks.Checks, in *inputs.Inputs, record deliver.Summary) (*checks.Unmet, error) {
	if len(in.Preconditions) == 0 {
		return nil, nil
	}
	if record.Digest != "" && record.Status != deliver.StatusDeployed {
		digest, err := r.DigestNow(ctx, in, record.FactsUsed)
		if err != nil || digest == record.Digest {
			return nil, err
		}
	}
	return c.First(ctx, "preconditions", in.Preconditions)
}

// postcondition returns what has to hold before the add-on is ready; nil if nothing has to.
func (q Delivery) postcondition(a *wanted.Addon) func(context.Context) (string, time.Duration, error) {
	if len(a.Postconditions) == 0 {
		return nil
	}
	return func(ctx context.Context) (string, time.Duration, error) {
		unmet, err := q.checks(a).First(ctx, "postconditions", a.Postconditions)
		if unmet == nil || err != nil {
			return "", 0, err
		}
		return unmet.Message, unmet.RetryAfter, nil
	}
}

// unmetPostcondition looks at the postconditions of an add-on that is installed, if they
// aren't those that held before. It returns what is waited for, nil if nothing is.
func (q Delivery) unmetPostcondition(ctx context.Context, a *wanted.Addon, record deliver.Summary) (*checks.Unmet, error) {
	if digest := a.PostconditionsDigest(); digest == "" || digest == record.Postconditions {
		return nil, nil
	}
	return q.checks(a).First(ctx, "postconditions", a.Postconditions)
}

// awaitPostcondition returns the result of an installed add-on that waits for a postcondition.
func awaitPostcondition(a *wanted.Addon, unmet *checks.Unmet, status addonsv1.AddonStatus) result.Addon {
	status.Phase, status.Reason = addonsv1.AddonUpgrading, deliver.ReasonWaitingForPostcondition
	status.Message = result.Shorten("Waiting for " + unmet.Message)
	if deadline := a.ProgressDeadline(); unmet.Waited >= deadline {
		status.Phase, status.Reason = addonsv1.AddonFailed, deliver.ReasonReadinessTimeout
		status.Message = result.Shorten(fmt.Sprintf("a postcondition doesn't hold within %s: %s", deadline, unmet.Message))
	}
	return result.Addon{Status: status, Applied: true, FollowUp: result.FollowUp{RetryAfter: unmet.RetryAfter}}
}
