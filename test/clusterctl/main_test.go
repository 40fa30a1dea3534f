// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"context"
	"os"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/cluster-chandler/chandler/test/manager"
	"github.com/cluster-chandler/chandler/test/suite"
)

// The versions of Chandler that there are. An older one runs on one management cluster, a newer one on the other.
const (
	olderVersion = "v0.1.0"
	newerVersion = "v0.1.1"
)

// world is what all tests share.
var world struct {
	dir        string // for everything that goes away with this run
	root       string // of the checkout
	clusterctl string
	config     string            // clusterctl's configuration file
	managers   map[string]string // version to binary
}

func TestMain(m *testing.M) { suite.Suite{Name: "clusterctl", Parallel: 6, Prepare: prepare}.Run(m) }

func prepare(ctx context.Context, root, dir string) error {
	world.root, world.dir = root, dir
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
