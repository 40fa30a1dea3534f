// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/test/manager"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/process"
	"github.com/cluster-chandler/chandler/test/realdata"
	"github.com/cluster-chandler/chandler/test/suite"
)

var world struct{ root, dir, binary string }

func TestMain(m *testing.M) {
	suite.Suite{Name: "bench", Parallel: 1, Prepare: func(ctx context.Context, root, dir string) (err error) {
		world.root, world.dir = root, dir
		world.binary, err = manager.Build(ctx, root, dir, "v0.0.0")
		return err
	}}.Run(m)
}

// Variables that say what is measured. The first three are lists of numbers with spaces between.
const (
	clustersEnv  = "CHANDLER_BENCH_CLUSTERS"     // how many
	instancesEnv = "CHANDLER_BENCH_INSTANCES"    // how many share them, by default one
	serversEnv   = "CHANDLER_BENCH_SERVERS"      // the most API servers, by default eight
	addonsEnv    = "CHANDLER_BENCH_ADDONS"       // four by default, or five
	memoryEnv    = "CHANDLER_BENCH_MEMORY_LIMIT" // GOMEMLIMIT of each instance, by default none
	rttEnv       = "CHANDLER_BENCH_RTT"          // milliseconds of a round trip to a cluster, by default none
	runsEnv      = "CHANDLER_BENCH_RUNS"         // how often, by default once
	outEnv       = "CHANDLER_BENCH_OUT"          // where the results go, as JSON and Markdown
)

// TestFleet measures fleets of some sizes: installation, an upgrade of one value, a change of an object in each cluster, a
// restart, and a while at rest.
func TestFleet(t *testing.T) {
	if os.Getenv(clustersEnv) == "" {
		t.Skip(clustersEnv + " says how many clusters there are to be")
	}
	var all []measured
	var tables []string
	for _, clusters := range numbers(t, clustersEnv, 0) {
		for _, instances := range numbers(t, instancesEnv, 1) {
			m := measured{Size: size{
				Clusters: clusters, Instances: instances, Renderers: 2, Addons: numbers(t, addonsEnv, 4)[0], Servers: min(clusters, numbers(t, serversEnv, 8)[0]),
				MemoryLimit: os.Getenv(memoryEnv), RTT: time.Duration(numbers(t, rttEnv, 0)[0]) * time.Millisecond,
			}}
			if m.Size.RTT > 0 && clusters > m.Size.Servers {
				t.Fatalf("%s is for clusters that have API servers of their own", rttEnv)
			}
			for i := range numbers(t, runsEnv, 1)[0] {
				t.Run(fmt.Sprintf("%d clusters/%d instances/%d", clusters, instances, i), func(t *testing.T) { m.Runs = append(m.Runs, measure(t, m.Size)) })
			}
			if t.Failed() || len(m.Runs) == 0 { // skipped, without real charts
				return
			}
			all, tables = append(all, m), append(tables, m.markdown())
			t.Log("\n" + m.markdown())
		}
	}
	if out := os.Getenv(outEnv); out != "" {
		must.Succeed(t, write(out, "fleet", all, tables))
	}
}

func numbers(t *testing.T, variable string, otherwise int) []int {
	t.Helper()
	var all []int
	for field := range strings.FieldsSeq(os.Getenv(variable)) {
		n, err := strconv.Atoi(field)
		if err != nil || n < 1 {
			t.Fatalf("%s=%q: it is a list of numbers", variable, os.Getenv(variable))
		}
		all = append(all, n)
	}
	if len(all) == 0 {
		return []int{otherwise}
	}
	return all
}

// measure runs all phases once.
func measure(t *testing.T, s size) result {
	f := startFleet(t, s, realdata.Path(t, "charts"))
	r := result{}

	r.Install, r.Upgrade = f.install(), f.upgrade()
	f.settle()
	r.Drift = f.drift()
	f.settle()
	r.PeakMiB = f.memory(process.PeakResident)
	time.Sleep(atRest) // what was used for a while is given back
	r.AfterInstallMiB = f.memory(process.Resident)
	r.Restart = f.restart()

	begin := f.snapshot()
	time.Sleep(atRest)
	r.Rest = f.since(begin)
	r.RestMiB = f.memory(process.Resident)
	r.HeapMiB, r.Goroutines = f.metric("go_memstats_heap_alloc_bytes")/(1<<20), f.metric("go_goroutines")

	installed := f.installed()
	f.stop()
	if s.Instances == 1 {
		r.Floor, r.SameWrites = measureFloor(t, s, installed), measureSameWrites(t, s, installed)
		if checkout := os.Getenv(helmProviderEnv); checkout != "" {
			r.HelmProvider = measureHelmProvider(t, s, checkout)
		}
	}
	return r
}
