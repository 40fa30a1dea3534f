// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/audit"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	running "github.com/cluster-chandler/chandler/test/process"
	"github.com/cluster-chandler/chandler/test/wait"
)

// restFor is how long requests are counted while nothing happens.
const restFor = 20 * time.Second

// maxOwn is the memory that an instance may have for itself at rest, in MiB, processes that
// render included. Pages of the program's file don't count: processes of one node share them,
// and the kernel drops them where memory is short.
const maxOwn = 57

// TestCost has an instance manage ten clusters, and counts what it costs when
// nothing happens: memory, and requests. It runs as it is installed: with the flags of
// the built Deployment.
func TestCost(t *testing.T) {
	long.Test(t)
	t.Parallel()
	w := newWorld(t, usual)
	w.startInstance(overlay{name: "another", namespaces: []string{"team-b"}})
	i := w.install(overlay{name: "measured", namespaces: []string{"team-a"}})
	m := i.w.newPod(i.deployment).process(i.version, "--leader-elect-namespace="+i.namespace)
	*i.replicas = append(*i.replicas, m)
	m.Launch()
	i.awaitReady()
	const clusters = 10
	for n := range clusters {
		name := restingName(n)
		must.Succeed(t, w.makeCluster(t.Context(), "team-a", name, workload(t, n%3), map[string]string{"name": name}))
		addon := settings("settings-"+name, w.addonNamespace("team-a"), "one")
		w.create(stackNamed("team-a", name, map[string]string{"name": name}, addon))
	}
	for n := range clusters {
		w.awaitClusterReady("team-a", restingName(n))
		w.awaitStackReady("team-a", restingName(n))
	}
	i.awaitRegistered("the instance is to have counted all Clusters", func(pi *addonsv1.ProviderInstance) error {
		return counted(pi, clusters)
	})

	began := time.Now()
	begin := w.Audit.Mark(t)
	fleet := make([]audit.Mark, 0, 3)
	for n := range 3 {
		fleet = append(fleet, workload(t, n).Audit.Mark(t))
	}
	wait.Throughout(t, restFor, "it continues", m.Running)
	mine := audit.By(i.user())
	requests := begin.Requests(t, mine)
	onFleet := 0
	for _, s := range fleet {
		onFleet += len(s.Requests(t, func(e *event) bool {
			namespace, _, ok := w.clusterOf(e.User.Username)
			return ok && namespace == "team-a"
		}))
	}
	seconds := time.Since(began).Seconds()
	counts := map[string]int{}
	for k := range requests {
		counts[requests[k].Verb+" "+pathOf(&requests[k])]++
	}
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("at rest: %.2f/s %s", float64(counts[what])/seconds, what)
	}
	t.Logf("at rest: %.2f/s to %d workload clusters, which are asked whether they are alive", float64(onFleet)/seconds, clusters)
	for k := range requests {
		if e := &requests[k]; !isLease(e) && !isHeartbeat(e) && !isRewatch(e) {
			t.Errorf("an instance at rest makes no request beyond its lease and its heartbeat: %s", describe(e))
		}
	}

	all, err := running.List()
	must.Succeed(t, err)
	own := 0.0
	for _, p := range all {
		if p.PID != m.PID() && p.Parent != m.PID() {
			continue
		}
		resident, _ := running.Memory(p.PID, running.Resident) // 0 of a renderer that has ended
		program, _ := running.Memory(p.PID, running.ResidentFiles)
		t.Logf("at rest with %d clusters: %s of process %d has %.0f MiB, of which %.0f MiB are the program's file", clusters, p.Name, p.PID, resident, program)
		own += resident - program
	}
	t.Logf("at rest with %d clusters: together they have %.0f MiB for themselves", clusters, own)
	if own > maxOwn {
		t.Errorf("an instance at rest has more than %d MiB for itself", maxOwn)
	}
}

func restingName(n int) string { return fmt.Sprintf("resting-%d", n) }

func pathOf(e *event) string {
	path, _, _ := strings.Cut(e.RequestURI, "?")
	return path
}

func isLease(e *event) bool {
	return e.ObjectRef != nil && e.ObjectRef.Resource == "leases"
}

func isHeartbeat(e *event) bool {
	return e.ObjectRef != nil && e.ObjectRef.Resource == "providerinstances" && e.ObjectRef.Subresource == "status" && e.Verb == "patch"
}

// isRewatch says whether a watch that ran into its time limit starts again.
func isRewatch(e *event) bool { return e.Verb == "watch" }
