// SPDX-License-Identifier: Apache-2.0

// Package gobuild builds the programs that tests run.
package gobuild

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
	"slices"
	"strings"
	"sync"
)

// caching is held while a program is looked for and built: tests of one process that want it at once share the build.
var caching sync.Mutex

// Build runs `go build -o binary` in a folder, without C, as for the image; with the race detector if the arguments say so.
func Build(ctx context.Context, dir, binary string, args ...string) error {
	cgo := "CGO_ENABLED=0"
	if slices.Contains(args, "-race") {
		cgo = "CGO_ENABLED=1"
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-o", binary}, args...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), cgo, "GOWORK=off") // go.mod alone decides what is built
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// Cached returns the path of a program's binary, which is built once for each content of the sources, and kept in the
// user's cache directory, beside the control planes' binaries.
func Cached(program string, sources []string, build func(binary string) error) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, source := range sources {
		data, err := os.ReadFile(source)
		if err != nil {
			return "", err
		}
		sum.Write(data)
	}
	key := fmt.Sprintf("%s-%s-%s", runtime.GOOS, runtime.GOARCH, hex.EncodeToString(sum.Sum(nil))[:16])
	binary := filepath.Join(cache, "chandler", program, key, program)
	caching.Lock()
	defer caching.Unlock()
	if _, err := os.Stat(binary); !errors.Is(err, os.ErrNotExist) {
		return binary, err
	}
	if err := os.MkdirAll(filepath.Dir(binary), 0o755); err != nil {
		return "", err
	}
	// What stands at the final path is complete, whichever other process builds it at this moment.
	partial := fmt.Sprintf("%s.%d.partial", binary, os.Getpid())
	defer os.Remove(partial)
	if err := build(partial); err != nil {
		return "", err
	}
	return binary, os.Rename(partial, binary)
}
