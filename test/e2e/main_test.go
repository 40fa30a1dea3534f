// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"

	helmkube "helm.sh/helm/v4/pkg/kube"

	"github.com/cluster-chandler/chandler/test/controlplane"
	chandler "github.com/cluster-chandler/chandler/test/manager"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/suite"
)

// world is what all tests share.
var world struct {
	dir    string // for everything that goes away with this run
	root   string // of the checkout
	binary string // the manager
	hub    *server
}

func TestMain(m *testing.M) { suite.Suite{Name: "e2e", Parallel: 12, Prepare: prepare}.Run(m) }

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

// manager is a running process of the binary under test.
type manager = chandler.Process

// launch starts the binary with a kubeconfig. Health and webhooks are off, and
// metrics are served in the clear on loopback, unless the flags say otherwise.
func launch(t *testing.T, name string, kubeconfig []byte, flags ...string) *manager {
	t.Helper()
	return launchIn(t, nil, name, kubeconfig, flags...)
}

// launchIn does that with more environment variables.
func launchIn(t *testing.T, environment []string, name string, kubeconfig []byte, flags ...string) *manager {
	t.Helper()
	return chandler.Start(t, chandler.Options{
		Name: name, Binary: world.binary, Kubeconfig: kubeconfig, Args: flags, Env: environment, LogDir: os.Getenv("CHANDLER_E2E_LOGS"),
	})
}

// stopManager ends the tenant's last manager as a kubelet would.
func (tn *tenant) stopManager() {
	tn.t.Helper()
	tn.manager.Stop(tn.t)
}

// reconciled counts the reconciles of one controller of the tenant's last manager.
func (tn *tenant) reconciled(controller string) float64 {
	tn.t.Helper()
	n, err := reconciled(tn.manager, controller)
	must.Succeed(tn.t, err)
	return n
}

func reconciled(m *manager, controller string) (float64, error) {
	return m.Sum("controller_runtime_reconcile_total", fmt.Sprintf("controller=%q", controller))
}
