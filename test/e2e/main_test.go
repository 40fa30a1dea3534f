// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// concurrency is the number of tests at once. They mostly wait.
const concurrency = "4"

// world is what all tests share.
var world struct {
	dir    string // for everything that goes away with this run
	root   string // of the checkout
	binary string // the manager
	hub    *server
}

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("test/e2e is skipped: -short is set")
		return
	}
	parallel := flag.Lookup("test.parallel")
	if parallel.Value.String() == parallel.DefValue {
		_ = flag.Set(parallel.Name, concurrency)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	defer stopServers()
	if err := prepare(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "preparing test/e2e:", err)
		return 1
	}
	defer os.RemoveAll(world.dir)
	return m.Run()
}

func prepare(ctx context.Context) error {
	var err error
	if world.root, err = filepath.Abs("../.."); err != nil {
		return err
	}
	if world.dir, err = os.MkdirTemp("", "chandler-e2e-"); err != nil {
		return err
	}
	if world.binary, err = buildManager(ctx, world.root, world.dir); err != nil {
		return err
	}
	world.hub, err = startHub(ctx)
	return err
}
