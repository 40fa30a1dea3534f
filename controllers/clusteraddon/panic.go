// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"fmt"

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

// contained calls f, which handles answers of a cluster in a goroutine of its own. A
// panic is an error: it mustn't end the process, which serves all other clusters.
func contained(ctx context.Context, cluster string, f func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			deliver.Panicked(ctx, cluster, value)
			err = fmt.Errorf("panicked: %T", value)
		}
	}()
	return f()
}
