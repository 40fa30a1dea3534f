// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"cmp"
	"context"
	"fmt"
)

// awaitPostcondition waits until what has to hold after the add-on was applied does
// so. When that takes too long the add-on counts as failed, yet is still waited for.
func (r *run) awaitPostcondition(ctx context.Context) (*Outcome, error) {
	if r.want.Postcondition == nil || r.isRollback() {
		return nil, nil
	}
	waiting, retryAfter, err := r.want.Postcondition(ctx)
	if waiting == "" || err != nil {
		return nil, err
	}
	left, soon, err := r.noteWaiting(ctx)
	if err != nil {
		return nil, err
	}
	if left <= 0 {
		o, err := r.failed(ctx, ReasonReadinessTimeout, fmt.Sprintf("a postcondition doesn't hold within %s: %s", r.want.ProgressDeadline, waiting))
		if err != nil {
			return nil, err
		}
		o.RetryAfter = cmp.Or(o.RetryAfter, retryAfter)
		return o, nil
	}
	return r.wait(ReasonWaitingForPostcondition, "Waiting for "+waiting, shorter(retryAfter, soon)), nil
}
