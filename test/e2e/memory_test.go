// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/process"
)

const (
	mostResident = 1536 // MiB of the manager and its workers
	mostLeft     = 16   // MiB on the heap after an attack, more than before
	attackedFor  = 90 * time.Second
)

// TestMemoryOfAttacks has tenants and their clusters try to take the manager's memory: in each way alone, and from two namespaces in
// all ways at once. The manager has the limits that it is shipped with. A cluster of a third namespace is served meanwhile.
func TestMemoryOfAttacks(t *testing.T) {
	if os.Getenv("CHANDLER_E2E_HOSTILE") == "" {
		t.Skip("it takes minutes, and a machine that does nothing else: make test-hostile")
	}
	tn := newTenant(t)
	tn.environment = []string{"GOMEMLIMIT=" + shippedMemoryLimit(t)}
	in := map[string]*tenant{}
	namespaces := tn.namespace
	for _, name := range []string{"one", "two"} {
		other := *tn
		other.namespace += "-" + name
		world.hub.createNamespace(t, other.namespace)
		tn.allowIn(other.namespace)
		in[name] = &other
		namespaces += "," + other.namespace
	}
	address, err := process.FreeAddress()
	must.Succeed(t, err)
	m := tn.launch("--namespace="+namespaces, "--render-workers=2", "--profiler-address="+address)
	tn.makeStack("good", nil, tn.small("settings", withTemplate("text: {{ .Cluster.metadata.name }}"))) // each cluster needs a worker
	servers := map[string]*server{"first": workloadServer(t, 0), "alone": workloadServer(t, 1), "beside": workloadServer(t, 2)}
	serve := func(name string) time.Duration {
		start := time.Now()
		tn.makeCluster(name, servers[name], nil)
		tn.awaitCluster(name, "it is served", ready("settings"))
		return time.Since(start)
	}
	serve("first")
	prioritize(t, 19) // the servers of attackers, which are in this process, are on other machines as a rule
	t.Cleanup(func() { prioritize(t, 0) })
	idle := burn(t) // as the servers of the attackers do
	alone := serve("alone")
	idle()
	before := liveHeap(t, m, address)

	for _, attack := range memoryAttacks {
		tn.run(attack.name, func(t *testing.T, _ *tenant) {
			attacker := in["one"].in(t)
			measured := mostMemoryFor(t, m, attackedFor)
			attack.begin(attacker)
			most := <-measured
			attacker.leave()
			after := settledHeap(t, m, address, before)
			t.Logf("%s: at most %s; %d MiB on the heap before, %d after", attack.name, most, before, after)
			attacker.Expect(most.sum()).To(BeNumerically("<=", mostResident), "MiB")
			attacker.Expect(after-before).To(BeNumerically("<=", mostLeft), "MiB left")
		})
	}
	tn.run("all", func(t *testing.T, tn *tenant) {
		measured := mostMemoryFor(t, m, 2*attackedFor)
		for _, attack := range memoryAttacks {
			for _, attacker := range in {
				attack.begin(attacker.in(t))
			}
		}
		poll(t, time.Minute, "the attackers have what memory they can", func() error {
			claimed, err := m.Sum("chandler_memory_claimed_bytes")
			if err == nil && claimed < 384<<20 {
				err = fmt.Errorf("%.0f bytes are claimed", claimed)
			}
			return err
		})
		took := serve("beside")
		most := <-measured
		for _, attacker := range in {
			attacker.in(t).leave()
		}
		after := settledHeap(t, m, address, before)
		t.Logf("all at once: at most %s; %d MiB on the heap before, %d after; a good cluster took %s, and %s alone", most, before, after, took, alone)
		tn.Expect(most.sum()).To(BeNumerically("<=", mostResident), "MiB")
		tn.Expect(after-before).To(BeNumerically("<=", mostLeft), "MiB left")
		tn.Expect(took).To(BeNumerically("<=", 3*alone))
	})
	tn.Expect(m.Ended()).To(BeNil(), "the manager lives")
}

// prioritize gives all threads of the test a niceness. Threads and processes that start later inherit it.
func prioritize(t *testing.T, niceness int) {
	t.Helper()
	threads, err := os.ReadDir("/proc/self/task")
	must.Succeed(t, err)
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		must.Succeed(t, errors.Join(err, syscall.Setpriority(syscall.PRIO_PROCESS, id, niceness)))
	}
}

// burn has processes take all processors until it is ended.
func burn(t *testing.T) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 2 * runtime.NumCPU() {
		all.Go(func() { _ = exec.CommandContext(ctx, "sh", "-c", "while :; do :; done").Run() }) // until it is killed
	}
	return func() { cancel(); all.Wait() }
}

// resident is what a manager and its workers have in memory, in MiB. The pages of their common executable count once.
type resident struct {
	manager int
	workers []int
}

func (r resident) sum() int {
	sum := r.manager
	for _, worker := range r.workers {
		sum += worker
	}
	return sum
}

func (r resident) String() string {
	return fmt.Sprintf("%d MiB (manager %d, workers %v)", r.sum(), r.manager, r.workers)
}

// mostMemoryFor measures for a while how much the manager and its workers have in memory at most.
func mostMemoryFor(t *testing.T, m *manager, d time.Duration) <-chan resident {
	t.Helper()
	measured := make(chan resident, 1)
	go func() {
		var most resident
		for end := time.Now().Add(d); time.Now().Before(end) && m.Running() == nil; time.Sleep(100 * time.Millisecond) {
			now := resident{manager: memoryOf(t, m)}
			all, err := process.List()
			must.Succeed(t, err)
			for _, p := range all {
				if p.Parent != m.PID() {
					continue
				}
				mib, err := process.Memory(p.PID, process.Resident)
				files, errFiles := process.Memory(p.PID, process.ResidentFiles)
				if errors.Join(err, errFiles) == nil { // else it has ended
					now.workers = append(now.workers, int(mib-files))
				}
			}
			if now.sum() > most.sum() {
				most = now
			}
		}
		measured <- most
	}()
	return measured
}

// leave deletes all objects of the tenant's namespace that it made.
func (tn *tenant) leave() {
	tn.t.Helper()
	for _, kind := range []client.Object{&addonsv1.AddonStack{}, &clusterv1.Cluster{}, &corev1.ConfigMap{}} {
		must.Succeed(tn.t, world.hub.DeleteAllOf(tn.t.Context(), kind, client.InNamespace(tn.namespace)))
	}
	must.Succeed(tn.t, world.hub.DeleteAllOf(tn.t.Context(), &corev1.Secret{}, client.InNamespace(tn.namespace)))
}

// liveHeap returns what is on the manager's heap after a collection, in MiB.
func liveHeap(t *testing.T, m *manager, profiler string) int {
	t.Helper()
	response, err := http.Get("http://" + profiler + "/debug/pprof/heap?gc=1")
	must.Succeed(t, err)
	_, err = io.Copy(io.Discard, response.Body)
	must.Succeed(t, errors.Join(err, response.Body.Close()))
	bytes, err := m.Sum("go_memstats_heap_alloc_bytes")
	must.Succeed(t, err)
	return int(bytes) >> 20
}

// settledHeap returns what is left on the heap once it is about as small as it was before. By then no claim is left.
func settledHeap(t *testing.T, m *manager, profiler string, before int) (after int) {
	t.Helper()
	// client-go keeps each event for six to twelve minutes, in case it becomes a series.
	poll(t, 15*time.Minute, "no claim is left", func() error {
		after = liveHeap(t, m, profiler)
		claimed, err := m.Sum("chandler_memory_claimed_bytes")
		if err == nil && (claimed > 1<<20 || after-before > mostLeft) {
			err = fmt.Errorf("%.0f bytes are claimed, and %d MiB on the heap", claimed, after)
		}
		return err
	})
	return after
}

// shippedMemoryLimit returns the GOMEMLIMIT of config/manager.
func shippedMemoryLimit(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(world.root, "config/manager/manager.yaml"))
	must.Succeed(t, err)
	shipped := &appsv1.Deployment{}
	must.Succeed(t, yaml.Unmarshal(bytes.SplitN(data, []byte("\n---\n"), 2)[0], shipped))
	for _, env := range shipped.Spec.Template.Spec.Containers[0].Env {
		if env.Name == "GOMEMLIMIT" {
			return env.Value
		}
	}
	t.Fatal("config/manager has no GOMEMLIMIT")
	return ""
}
