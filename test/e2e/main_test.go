// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"strconv"
	"testing"

	helmkube "helm.sh/helm/v4/pkg/kube"

	"github.com/cluster-chandler/chandler/test/controlplane"
	chandler "github.com/cluster-chandler/chandler/test/manager"
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

// testVersion is what the manager under test says its version is.
const testVersion = "v0.0.0-e2e"

// buildManager builds the manager's binary once for all tests, unless the
// environment names one.
func buildManager(ctx context.Context, root, dir string) (string, error) {
	if binary := os.Getenv("CHANDLER_E2E_BINARY"); binary != "" {
		return binary, nil
	}
	return chandler.Build(ctx, root, dir, testVersion)
}

// environmentNumber returns the number that a variable has, or fallback if it isn't set.
func environmentNumber[N int | uint64](t *testing.T, name string, fallback N) N {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return fallback
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return N(n)
}
