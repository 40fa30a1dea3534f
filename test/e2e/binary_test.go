// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// testVersion is what the manager under test says its version is.
const testVersion = "v0.0.0-e2e"

// buildManager builds the manager's binary once for all tests, unless the
// environment names one.
func buildManager(ctx context.Context, root, dir string) (string, error) {
	if binary := os.Getenv("CHANDLER_E2E_BINARY"); binary != "" {
		return binary, nil
	}
	binary := filepath.Join(dir, "chandler")
	c := "CGO_ENABLED=0" // as in the image
	args := []string{"build", "-o", binary, "-ldflags", "-X github.com/cluster-chandler/chandler/internal/version.gitVersion=" + testVersion}
	if os.Getenv("CHANDLER_E2E_RACE") != "" {
		args, c = append(args, "-race"), "CGO_ENABLED=1"
	}
	cmd := exec.CommandContext(ctx, "go", append(args, ".")...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), c)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the manager: %w\n%s", err, out)
	}
	return binary, nil
}
