// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"

	chandler "github.com/cluster-chandler/chandler/test/manager"
)

// testVersion is what the manager under test says its version is.
const testVersion = "v0.0.0-e2e"

// buildManager builds the manager's binary once for all tests, unless the
// environment names one.
func buildManager(ctx context.Context, root, dir string) (string, error) {
	if binary := os.Getenv("CHANDLER_E2E_BINARY"); binary != "" {
		return binary, nil
	}
	return chandler.Build(ctx, root, dir, testVersion)
}
