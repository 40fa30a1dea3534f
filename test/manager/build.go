// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Build builds the checkout at root into dir, stamped with a version, and returns the path of the binary.
func Build(ctx context.Context, root, dir, version string) (string, error) {
	binary := filepath.Join(dir, "chandler-"+version)
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binary,
		"-ldflags", "-X github.com/cluster-chandler/chandler/internal/version.gitVersion="+version, ".")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0") // as in the image
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the manager: %w\n%s", err, out)
	}
	return binary, nil
}
