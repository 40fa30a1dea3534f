// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/process"
)

// What 1,000 connected clusters that offer the same may cost at rest.
const (
	mostMemoryAtRest   = 220 // MiB more than without any
	mostRequestsAtRest = 25  // in a second, to all of them
)

// TestManyClustersAtRest measures what CHANDLER_E2E_CLUSTERS_AT_REST connected clusters cost. They share an API server.
func TestManyClustersAtRest(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("CHANDLER_E2E_CLUSTERS_AT_REST"))
	if err != nil {
		t.Skip("CHANDLER_E2E_CLUSTERS_AT_REST says how many")
	}
	tn := newTenant(t)
	m := tn.startManager()
	poll(t, patience, "it works", func() error { _, err := reconciled(m, "assignment"); return err })
	before := memoryOf(t, m)
	kubeconfig := tn.userOn(workloadServer(t, 3), "all").Kubeconfig
	var making sync.WaitGroup
	for worker := range 8 {
		making.Go(func() {
			for i := worker; i < n; i += 8 {
				name := fmt.Sprintf("c%04d", i)
				tn.writeKubeconfig(name, kubeconfig)
				tn.makeClusterObject(name, nil)
			}
		})
	}
	making.Wait()
	poll(t, 10*time.Minute, "all are connected", func() error {
		connected, err := m.Sum("chandler_fleet_clusters", `phase="Connected"`)
		if err == nil && int(connected) < n {
			err = fmt.Errorf("%.0f are", connected)
		}
		return err
	})
	time.Sleep(2 * time.Minute) // a look at each one's APIs, and garbage
	requests, cpu := requestsOf(t, m), cpuOf(t, m)
	time.Sleep(time.Minute)
	perSecond, share := (requestsOf(t, m)-requests)/60, (cpuOf(t, m)-cpu).Seconds()/60
	more := memoryOf(t, m) - before
	t.Logf("%d clusters: %d MiB more than the %d MiB without, %.1f requests per second, %.1f%% of a core", n, more, before, perSecond, 100*share)
	if more > mostMemoryAtRest*n/1000 || perSecond > mostRequestsAtRest*float64(n)/1000 {
		t.Error("that is too much")
	}
}

func requestsOf(t *testing.T, m *manager) float64 {
	t.Helper()
	all, err := m.Sum("chandler_fleet_requests_total")
	must.Succeed(t, err)
	return all
}

// cpuOf is what the manager has computed, without its render workers.
func cpuOf(t *testing.T, m *manager) time.Duration {
	t.Helper()
	used, err := process.CPU(m.PID())
	must.Succeed(t, err)
	return used
}
