// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"context"
	"os"
	"strconv"
	"testing"

	"github.com/cluster-chandler/chandler/test/manager"
	"github.com/cluster-chandler/chandler/test/suite"
)

// shared is what all seeds share.
var shared struct {
	dir    string // for everything that goes away with this run
	root   string // of the checkout
	binary string // the manager
}

func TestMain(m *testing.M) { suite.Suite{Name: "actions", Parallel: 1, Prepare: prepare}.Run(m) }

func prepare(ctx context.Context, root, dir string) (err error) {
	shared.root, shared.dir = root, dir
	shared.binary, err = manager.Build(ctx, root, dir, "v0.0.0-actions")
	return err
}

// number returns the number that an environment variable has, or fallback if it isn't set.
func number(t *testing.T, name string, fallback int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return fallback
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}
