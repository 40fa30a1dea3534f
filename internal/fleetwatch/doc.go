// SPDX-License-Identifier: Apache-2.0

// Package fleetwatch watches in workload clusters what starts work there: the release
// records of add-ons, and which kinds come and go.
package fleetwatch

import (
	"context"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/cluster-chandler/chandler/internal/deliver"
)

// contained calls f, which handles answers of a cluster in a goroutine of its own. It logs a
// panic, which mustn't end the process: that serves all other clusters.
func contained(ctx context.Context, cluster string, f func()) {
	defer func() {
		if value := recover(); value != nil {
			deliver.Panicked(ctx, cluster, value)
		}
	}()
	f()
}

// keepTrying calls f again and again, with pauses, until the context ends. It outlives a panic of f.
func keepTrying(ctx context.Context, cluster string, pauses wait.DelayFunc, f func(context.Context)) {
	_ = pauses.Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		contained(ctx, cluster, func() { f(ctx) })
		return false, nil
	})
}
