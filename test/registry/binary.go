// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// source, in a checkout of this repository, of the registry.
const source = "hack/registry"

// binary returns the registry's binary. It is kept by what it is built of.
func binary(ctx context.Context) (string, error) {
	_, file, _, _ := runtime.Caller(0)
	dir := filepath.Join(filepath.Dir(file), "..", "..", source)
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, name := range []string{"go.mod", "go.sum", "main.go"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return "", err
		}
		sum.Write(data)
	}
	path := filepath.Join(cache, "chandler", "registry", hex.EncodeToString(sum.Sum(nil))[:16])
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		return path, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return "", err
	}
	// Several tests may build it at once; each puts a whole one in its place.
	partial := fmt.Sprintf("%s.%d", path, os.Getpid())
	build := exec.CommandContext(ctx, "go", "build", "-C", dir, "-trimpath", "-ldflags", "-s -w", "-o", partial, ".")
	build.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", source, err, out)
	}
	return path, os.Rename(partial, path)
}
