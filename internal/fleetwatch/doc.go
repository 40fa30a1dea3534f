// SPDX-License-Identifier: Apache-2.0

// Package fleetwatch watches in workload clusters what starts work there: the release
// records of add-ons, and which kinds come and go.
package fleetwatch

import (
	"context"

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
