// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet/fleettest"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/process"
)

// hostileFor is how long the memory of the manager is looked at.
func hostileFor(t *testing.T) time.Duration {
	t.Helper()
	value := os.Getenv("CHANDLER_E2E_HOSTILE")
	if value == "" {
		return 20 * time.Second
	}
	d, err := time.ParseDuration(value)
	must(t, err)
	return d
}

// mostMemory is how much more memory, in MiB, the manager may have beside a hostile cluster, and
// mostMemoryOfMany how much it may have at all.
const mostMemory, mostMemoryOfMany = 150, 400

// askingChart asks for the kinds of the cluster.
var askingChart = chart{"templates/text.yaml": configMap("{{ .Release.Name }}", `{{ .Capabilities.APIVersions.Has "x.example.com/v1/Thing" | quote }}`)}

// TestHostileClusters has API servers that misbehave beside one that doesn't: these harm
// neither the manager, nor the cluster that comes after them.
func TestHostileClusters(t *testing.T) {
	long.Test(t)
	g := NewWithT(t)
	tn := newTenant(t)
	tn.makeStack("platform", nil, tn.addon("asking", tn.writeChart("asking", "1.0.0", askingChart)))
	tn.makeCluster("good", workloadServer(t, 0), nil)
	m := tn.startManager()
	tn.awaitCluster("good", "it is alone", ready("asking"))
	before, most := memoryOf(t, m), 0

	servers := map[string]*fleettest.Server{}
	start := func(name string, misbehave fleettest.Misbehaviour) {
		servers[name] = fleettest.Start(t, misbehave)
		tn.writeKubeconfig(name, servers[name].Kubeconfig(t))
		tn.makeClusterObject(name, nil)
	}
	for name, misbehave := range fleettest.Misbehaviours("/api/v1/secrets") {
		start(name, misbehave)
		if os.Getenv("CHANDLER_E2E_HOSTILE") != "" {
			start(name+"-2", misbehave)
		}
	}
	end := time.Now().Add(hostileFor(t))
	poll(t, hostileFor(t)+patience, "each is to misbehave, for a while", func() error {
		most = max(most, memoryOf(t, m))
		for name, s := range servers {
			if s.Misbehaved.Load() == 0 {
				return fmt.Errorf("%s hasn't misbehaved", name)
			}
		}
		if time.Now().Before(end) {
			return errors.New("there is time left")
		}
		return nil
	})
	tn.makeCluster("late", workloadServer(t, 1), nil)
	tn.awaitCluster("late", "a cluster isn't harmed by hostile ones", ready("asking"))
	tn.awaitCluster("bomb", "what is too large is named", phase("asking", addonsv1.AddonPending, "ResponseTooLarge", "GET /api was answered with more than 4096 KiB"))
	tn.awaitCluster("many-groups", "too many kinds are told", phase("asking", addonsv1.AddonPending, "TooManyKinds", "1000"))
	tn.awaitCluster("forgets", "lost records are told", phase("asking", addonsv1.AddonPending, "RecordLost", "gone after each installation"))

	g.Expect(m.Ended()).To(BeNil(), "the manager lives")
	g.Expect(servers["changes-kinds"].Requests("GET", "/apis")).To(BeNumerically("<=", 8), "discoveries while kinds change all the time")
	g.Expect(servers["forgets"].Requests("POST", "/secrets")).To(BeNumerically("<=", 10), "installations that don't last")
	most = max(most, memoryOf(t, m))
	t.Logf("%d MiB before, at most %d MiB beside %d hostile clusters", before, most, len(servers))
	g.Expect(most).To(BeNumerically("<=", mostMemoryOfMany), "MiB")
}

// memoryOf is what the manager has in memory, in MiB, without its render workers.
func memoryOf(t *testing.T, m *manager) int {
	t.Helper()
	mib, err := process.Memory(m.PID(), process.Resident)
	must(t, err)
	return int(mib)
}
