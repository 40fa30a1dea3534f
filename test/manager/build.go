// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"os"
	"path/filepath"

	"github.com/cluster-chandler/chandler/test/gobuild"
)

// Build builds the checkout at root into dir, stamped with a version, and returns the path of the binary. With
// CHANDLER_E2E_RACE set it has the race detector.
func Build(ctx context.Context, root, dir, version string, flags ...string) (string, error) {
	binary := filepath.Join(dir, "chandler-"+version)
	args := append([]string{"-ldflags", "-X github.com/cluster-chandler/chandler/internal/version.gitVersion=" + version}, flags...)
	if os.Getenv("CHANDLER_E2E_RACE") != "" {
		args = append(args, "-race")
	}
	return binary, gobuild.Build(ctx, root, binary, append(args, ".")...)
}
