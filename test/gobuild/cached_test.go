// SPDX-License-Identifier: Apache-2.0

package gobuild_test

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cluster-chandler/chandler/test/gobuild"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestCachedOfManyTests has the tests of one process ask for a program at once on a machine that hasn't built it.
func TestCachedOfManyTests(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	source := filepath.Join(t.TempDir(), "go.mod")
	must.Succeed(t, os.WriteFile(source, []byte("module a\n"), 0o600))
	var builds atomic.Int32
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			binary, err := gobuild.Cached("program", []string{source}, func(path string) error {
				builds.Add(1)
				return os.WriteFile(path, []byte("binary"), 0o600)
			})
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := os.Stat(binary); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	if builds.Load() != 1 {
		t.Errorf("%d builds, expected 1", builds.Load())
	}
}
