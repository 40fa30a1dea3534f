// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"testing"

	chandler "github.com/cluster-chandler/chandler/test/manager"
)

// manager is a running process of the binary under test.
type manager struct {
	*chandler.Process
	log     string // file
	metrics string // URL
}

// launch starts the binary with a kubeconfig. Health and webhooks are off, and
// metrics are served in the clear on loopback, unless the flags say otherwise.
func launch(t *testing.T, name string, kubeconfig []byte, flags ...string) *manager {
	t.Helper()
	return launchIn(t, nil, name, kubeconfig, flags...)
}

// launchIn does that with more environment variables.
func launchIn(t *testing.T, environment []string, name string, kubeconfig []byte, flags ...string) *manager {
	t.Helper()
	p := chandler.Start(t, chandler.Options{
		Name: name, Binary: world.binary, Kubeconfig: kubeconfig, Args: flags, Env: environment, LogDir: os.Getenv("CHANDLER_E2E_LOGS"),
	})
	return &manager{Process: p, log: p.LogFile, metrics: p.Metrics}
}

// kill ends the process as a power failure would.
func (m *manager) kill() { m.Kill() }

// stop ends the manager as a kubelet would.
func (m *manager) stop(t *testing.T) {
	t.Helper()
	m.Stop(t)
}

// stopManager ends the tenant's last manager as a kubelet would.
func (tn *tenant) stopManager() {
	tn.t.Helper()
	tn.manager.stop(tn.t)
}

// tail is the end of the log.
func (m *manager) tail() []byte { return m.Tail() }

// sum adds up the samples of a metric that have all the given labels.
func (m *manager) sum(metric string, labels ...string) (float64, error) {
	return m.Sum(metric, labels...)
}

// reconciled counts the reconciles of one controller.
func (m *manager) reconciled(controller string) (float64, error) {
	return m.sum("controller_runtime_reconcile_total", fmt.Sprintf("controller=%q", controller))
}

// freeAddress returns an address on loopback that nothing listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	return chandler.FreeAddress(t)
}
