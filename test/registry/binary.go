// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"path/filepath"
	"runtime"

	"github.com/cluster-chandler/chandler/test/gobuild"
)

// source, in a checkout of this repository, of the registry.
const source = "hack/registry"

// binary returns the registry's binary.
func binary(ctx context.Context) (string, error) {
	_, file, _, _ := runtime.Caller(0)
	dir := filepath.Join(filepath.Dir(file), "..", "..", source)
	sources := []string{filepath.Join(dir, "go.mod"), filepath.Join(dir, "go.sum"), filepath.Join(dir, "main.go")}
	return gobuild.Cached("registry", sources, func(path string) error {
		return gobuild.Build(ctx, dir, path, "-trimpath", "-ldflags", "-s -w", ".")
	})
}
