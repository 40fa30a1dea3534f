// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet/fleettest"
)

// fairness is a manager with a cluster of its own, whose time to be ready alone is known.
type fairness struct {
	*tenant
	manager *manager
	path    string
	alone   time.Duration
}

func startFairness(t *testing.T, flags ...string) *fairness {
	t.Helper()
	if os.Getenv("CHANDLER_E2E_HOSTILE") == "" {
		t.Skip("it takes minutes, and a machine that does nothing else: make test-hostile")
	}
	tn := newTenant(t)
	f := &fairness{tenant: tn, path: tn.writeChart("settings", "1.0.0", configMapChart)}
	f.manager = tn.startManager(flags...)
	tn.makeStack("good", labels("who=good"), tn.addon("settings", f.path))
	f.alone = f.served(t, "good-0", workloadServer(t, 0))
	return f
}

// served returns how long a new cluster takes to be ready.
func (f *fairness) served(t *testing.T, name string, s *server) time.Duration {
	t.Helper()
	start := time.Now()
	f.makeCluster(name, s, labels("who=good"))
	f.awaitCluster(name, "it is served", ready("settings"))
	return time.Since(start)
}

// besides makes a stack with add-ons, and clusters of one server that are to run it.
func (f *fairness) besides(t *testing.T, clusters int, misbehave fleettest.Misbehaviour, addons ...addonsv1.Addon) *fleettest.Server {
	t.Helper()
	f.makeStack("bad", labels("who=bad"), addons...)
	s := fleettest.Start(t, misbehave)
	for i := range clusters {
		name := fmt.Sprint("bad-", i)
		f.writeKubeconfig(name, s.Kubeconfig(t))
		f.makeClusterObject(name, labels("who=bad"))
	}
	return s
}

// TestSlowClusters has more clusters than there are workers, each of which answers just in
// time for the request to go on.
func TestSlowClusters(t *testing.T) {
	g := NewWithT(t)
	f := startFairness(t)
	addons := make([]addonsv1.Addon, 20)
	for i := range addons {
		addons[i] = f.addon(fmt.Sprint("a", i), f.path)
	}
	slow := f.besides(t, 60, fleettest.Misbehaviours("/api/v1/secrets")["slow"], addons...)
	poll(t, patience, "slow passes are to hold workers", func() error {
		if n := slow.Misbehaved.Load(); n < 60 {
			return fmt.Errorf("%d slow answers", n)
		}
		return nil
	})
	poll(t, patience, "but half of them at most", func() error {
		active, err := f.manager.sum("controller_runtime_active_workers", `controller="clusteraddon"`)
		if err == nil && active > 25 {
			err = fmt.Errorf("%v workers are held", active)
		}
		return err
	})
	beside := f.served(t, "good-1", workloadServer(t, 1))
	t.Logf("alone %s, beside slow ones %s", f.alone, beside)
	g.Expect(beside).To(BeNumerically("<=", 3*f.alone))
}
