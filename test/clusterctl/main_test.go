// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/cluster-chandler/chandler/test/manager"
)

// The versions of Chandler that there are. An older one runs on one management cluster, a newer one on the other.
const (
	olderVersion = "v0.1.0"
	newerVersion = "v0.1.1"
)

// concurrency is the number of tests at once. They mostly wait.
const concurrency = "6"

// world is what all tests share.
var world struct {
	dir        string // for everything that goes away with this run
	root       string // of the checkout
	clusterctl string
	config     string            // clusterctl's configuration file
	managers   map[string]string // version to binary
}

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("test/clusterctl is skipped: -short is set")
		return
	}
	parallel := flag.Lookup("test.parallel")
	if parallel.Value.String() == parallel.DefValue {
		_ = flag.Set(parallel.Name, concurrency)
	}
	log.SetLogger(logr.Discard()) // the tests say themselves what went wrong
	os.Exit(run(m))
}

func run(m *testing.M) int {
	defer func() { _ = os.RemoveAll(world.dir) }()
	defer stopServers() // before that, as they write into it
	if err := prepare(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "preparing test/clusterctl:", err)
		return 1
	}
	return m.Run()
}

func prepare(ctx context.Context) error {
	var err error
	if world.root, err = filepath.Abs("../.."); err != nil {
		return err
	}
	if world.dir, err = os.MkdirTemp("", "chandler-clusterctl-"); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		world.clusterctl, err = provideClusterctl(ctx, os.Stderr)
		return err
	})
	g.Go(func() (err error) {
		world.config, err = makeRepositories(ctx)
		return err
	})
	g.Go(func() (err error) {
		world.managers = map[string]string{}
		for _, version := range []string{olderVersion, newerVersion} {
			if world.managers[version], err = manager.Build(ctx, world.root, world.dir, version); err != nil {
				return err
			}
		}
		return nil
	})
	return g.Wait()
}
