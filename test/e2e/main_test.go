// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"testing"

	helmkube "helm.sh/helm/v4/pkg/kube"

	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/suite"
)

// world is what all tests share.
var world struct {
	dir    string // for everything that goes away with this run
	root   string // of the checkout
	binary string // the manager
	hub    *server
}

func TestMain(m *testing.M) { suite.Suite{Name: "e2e", Parallel: 8, Prepare: prepare}.Run(m) }

func prepare(ctx context.Context, root, dir string) error {
	world.root, world.dir = root, dir
	helmkube.ManagedFieldsManager = "helm" // as of that program, not of the test's
	var err error
	if world.binary, err = buildManager(ctx, root, dir); err != nil {
		return err
	}
	world.hub, err = startHub(ctx, controlplane.Options{Name: "management"})
	return err
}
