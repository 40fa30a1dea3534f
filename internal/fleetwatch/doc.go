// SPDX-License-Identifier: Apache-2.0

// Package fleetwatch watches in workload clusters what starts work there: the release
// records of add-ons, their objects, and which kinds come and go.
package fleetwatch

import (
	"context"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/cluster-chandler/chandler/internal/deliver"
)

// keepTrying calls f again and again, with pauses, until the context ends. It handles answers of a
// cluster: a panic, which is logged, mustn't end the process, as that serves all other clusters.
func keepTrying(ctx context.Context, cluster string, pauses wait.DelayFunc, f func(context.Context)) {
	_ = pauses.Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		defer func() {
			if value := recover(); value != nil {
				deliver.Panicked(ctx, cluster, value)
			}
		}()
		f(ctx)
		return false, nil
	})
}
