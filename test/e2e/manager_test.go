// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"testing"

	chandler "github.com/cluster-chandler/chandler/test/manager"
)

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
	must(tn.t, err)
	return n
}

func reconciled(m *manager, controller string) (float64, error) {
	return m.Sum("controller_runtime_reconcile_total", fmt.Sprintf("controller=%q", controller))
}
