// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet/fleettest"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
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
	must.Succeed(t, err)
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

	tn.Expect(m.Ended()).To(BeNil(), "the manager lives")
	tn.Expect(servers["changes-kinds"].Requests("GET", "/apis")).To(BeNumerically("<=", 8), "discoveries while kinds change all the time")
	tn.Expect(servers["forgets"].Requests("POST", "/secrets")).To(BeNumerically("<=", 10), "installations that don't last")
	most = max(most, memoryOf(t, m))
	t.Logf("%d MiB before, at most %d MiB beside %d hostile clusters", before, most, len(servers))
	tn.Expect(most).To(BeNumerically("<=", mostMemoryOfMany), "MiB")
}

// memoryOf is what the manager has in memory, in MiB, without its render workers.
func memoryOf(t *testing.T, m *manager) int {
	t.Helper()
	mib, err := process.Memory(m.PID(), process.Resident)
	must.Succeed(t, err)
	return int(mib)
}

// What one hostile cluster may cost, and how long what it does may be unseen and unfinished.
const (
	mostGoroutines = 300 // more than before
	namedWithin    = time.Minute
	gone           = 2 * time.Second
	quiet          = 10 * time.Second
)

// TestEachHostileCluster has one cluster that misbehaves, of each kind, beside one that doesn't.
func TestEachHostileCluster(t *testing.T) {
	for name, misbehave := range fleettest.Misbehaviours("/api/v1/secrets") {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := startFairness(t)
			memory, goroutines := memoryOf(t, f.manager), f.goroutines(t)
			start := time.Now()
			bad := f.besides(t, 1, misbehave, f.addon("asking", f.writeChart("asking", "1.0.0", askingChart)))

			var named time.Duration // from the start until the ClusterAddon says what is wrong
			var why string
			mostMore, mostRunning := 0, 0
			poll(t, hostileFor(t)+patience, "it is to misbehave for a while", func() error {
				mostMore = max(mostMore, memoryOf(t, f.manager)-memory)
				mostRunning = max(mostRunning, f.goroutines(t)-goroutines)
				if ca := f.clusterAddon("bad-0"); world.hub.Get(t.Context(), f.key("bad-0"), ca) == nil {
					if now := whatIsWrong(ca); now != why {
						named, why = time.Since(start), now
					}
				}
				if time.Since(start) < hostileFor(t) {
					return errors.New("there is time left")
				}
				return nil
			})
			beside := f.served(t, "good-1", workloadServer(t, 1))
			t.Logf("%d MiB and %d goroutines more; a good cluster is ready after %s, %.2f times that of before; after %s: %s",
				mostMore, mostRunning, beside.Round(time.Millisecond), beside.Seconds()/f.alone.Seconds(), named.Round(time.Second), why)
			g.Expect(bad.Misbehaved.Load()).To(BeNumerically(">", 0), "it is to misbehave")
			g.Expect(mostMore).To(BeNumerically("<=", mostMemory), "MiB more than before")
			g.Expect(mostRunning).To(BeNumerically("<=", mostGoroutines), "goroutines more than before")
			if name != "changes-kinds" { // that is no fault: such a cluster is served
				g.Expect(why).NotTo(Or(BeEmpty(), HavePrefix("Connecting"), HaveSuffix("are being read")), "the ClusterAddon is to say what is wrong")
				g.Expect(named).To(BeNumerically("<=", namedWithin))
			}

			f.remove(newCluster(f.namespace, "bad-0", nil))
			poll(t, patience, "the Cluster is to go", func() error {
				if err := world.hub.Get(t.Context(), f.key("bad-0"), newCluster("", "", nil)); !apierrors.IsNotFound(err) {
					return fmt.Errorf("it is there: %w", err)
				}
				return nil
			})
			time.Sleep(gone)
			before := bad.Requests("", "")
			time.Sleep(quiet)
			g.Expect(bad.Requests("", "")-before).To(BeZero(), "requests after the Cluster is gone")
			g.Expect(f.manager.Ended()).To(BeNil(), "the manager lives")
		})
	}
}

// whatIsWrong is what a ClusterAddon says is wrong, with the reason first; "" if nothing is.
func whatIsWrong(ca *addonsv1.ClusterAddon) string {
	if err := errorOf(ca); err != nil {
		return err.Error()
	}
	if c := conditions.Get(ca, addonsv1.AddonsReadyCondition); c != nil && c.Status != metav1.ConditionTrue {
		return c.Reason + ": " + c.Message
	}
	return ""
}

func (f *fairness) goroutines(t *testing.T) int {
	t.Helper()
	n, err := f.manager.Sum("go_goroutines")
	must.Succeed(t, err)
	return int(n)
}
