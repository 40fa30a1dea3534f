// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
)

// panicRetry is when to look again at an add-on that led to a panic, in case no event does.
const panicRetry = reconcileTimeout

// contain recovers from a panic and makes it the add-on's failure. It is to be deferred.
func (q *request) contain(ctx context.Context, status addonsv1.AddonStatus, one *addonResult) {
	if value := recover(); value != nil {
		*one = because(status, deliver.ReasonInternalError, deliver.Panicked(ctx, q.workload.name.String(), value))
		one.retryAfter = panicRetry
	}
}
