// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"fmt"
)

// awaitPostcondition waits until what has to hold after the add-on was applied does
// so. When that takes too long the add-on counts as failed, yet is still waited for.
func (r *run) awaitPostcondition(ctx context.Context) error {
	if r.want.Postcondition == nil || r.isRollback() {
		return nil
	}
	waiting, retryAfter, err := r.want.Postcondition(ctx)
	if waiting == "" || err != nil {
		return err
	}
	left, soon, err := r.noteWaiting(ctx)
	if err != nil {
		return err
	}
	if left <= 0 {
		return r.failed(ctx, ReasonReadinessTimeout, fmt.Sprintf(
			"a postcondition doesn't hold within %s: %s", r.want.ProgressDeadline, waiting), retryAfter)
	}
	return r.wait(ReasonWaitingForPostcondition, "Waiting for "+waiting, shorter(retryAfter, soon))
}
