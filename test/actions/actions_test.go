// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"fmt"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/test/long"
)

// action is something that the operator does at random, if it can be done now.
type action struct {
	weight int
	do     func(*fleet) bool
}

var allActions = []action{
	{12, (*fleet).changeText},
	{12, (*fleet).drop},
	{14, (*fleet).add},
	{6, (*fleet).rename},
	{6, (*fleet).transfer},
	{8, (*fleet).moveInTwo},
	{6, (*fleet).pauseStack},
	{4, (*fleet).pauseCluster},
	{4, (*fleet).orphanStack},
	{6, (*fleet).setRollout},
	{12, (*fleet).steerRollout},
	{4, (*fleet).holdCluster},
	{5, (*fleet).reselect},
	{4, (*fleet).setLimit},
	{5, (*fleet).toggleStack},
	{10, (*fleet).relabel},
	{5, (*fleet).toggleCluster},
	{10, (*fleet).confirm},
	{5, (*fleet).deleteRevision},
	{5, (*fleet).deleteClusterAddon},
	{4, (*fleet).deleteValues},
	{2, (*fleet).deleteCRD},
	{8, (*fleet).deleteInCluster},
	{8, (*fleet).restart},
	{9, (*fleet).unlink},
	{5, (*fleet).hubBackupOrRestore},
	{4, (*fleet).clusterBackupOrRestore},
	{2, (*fleet).moveAction},
	{12, (*fleet).plan},
}

// TestRandomActions has an operator do random things to a fleet. In the environment, CHANDLER_ACTIONS is the number of
// them, CHANDLER_ACTIONS_CLUSTERS that of clusters, and CHANDLER_ACTIONS_SEEDS that of seeds, from CHANDLER_RANDOM_SEED on.
func TestRandomActions(t *testing.T) {
	long.Test(t)
	count, clusters := number(t, "CHANDLER_ACTIONS", 30), number(t, "CHANDLER_ACTIONS_CLUSTERS", 3)
	first, seeds := number(t, "CHANDLER_RANDOM_SEED", 1), number(t, "CHANDLER_ACTIONS_SEEDS", 1)
	begin := time.Now()
	s := startServers(t, clusters)
	t.Logf("%d clusters are there after %s", clusters, time.Since(begin).Round(time.Second))
	for seed := first; seed < first+seeds; seed++ {
		if !t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			f := newFleet(t, s, seed)
			t.Cleanup(func() { // behind that of the managers, which may fail
				t.Logf("CHANDLER_RANDOM_SEED=%d CHANDLER_ACTIONS=%d CHANDLER_ACTIONS_CLUSTERS=%d", seed, count, clusters)
				if t.Failed() {
					t.Logf("actions:\n%s", f.history)
				}
			})
			f.run(count)
		}) {
			break
		}
	}
}

// finishing is how much time of -timeout is left for a fleet to come right. No more actions are taken by then. A wave whose clusters
// fail for a release that is left as it is holds up the next one for a minute.
const finishing = 4 * time.Minute

// run makes a fleet, takes actions, and has all come right in the end.
func (f *fleet) run(count int) {
	f.t.Helper()
	begin := time.Now()
	f.prepare()
	total, rests := 0, 0
	for _, a := range allActions {
		total += a.weight
	}
	deadline, hasDeadline := f.t.Deadline()
	for n := range count {
		if hasDeadline && time.Until(deadline) < finishing {
			count = n
			break
		}
		few := f.count(wanted) < len(f.now().shares)/3
		if few {
			f.replenish()
		}
		for isDone := few; !isDone; {
			dice, i := f.random.IntN(total), 0
			for ; dice >= allActions[i].weight; i++ {
				dice -= allActions[i].weight
			}
			isDone = allActions[i].do(f)
		}
		switch f.random.IntN(5) {
		case 0, 1:
			if f.settle(12 * time.Second) {
				rests++
			}
		case 2:
			time.Sleep(time.Duration(f.random.IntN(2000)) * time.Millisecond)
		}
		if len(f.actions)%10 == 0 {
			f.evaluateAll()
		}
	}
	f.t.Logf("%d actions within %s, at rest after %d of them", count, time.Since(begin).Round(time.Second), rests)
	f.finish()
}

// prepare makes Clusters and stacks, and waits until all is installed.
func (f *fleet) prepare() {
	f.t.Helper()
	f.start(0)
	f.change(func(m *model) {
		for c := range m.clusters {
			m.clusters[c].exists = true
			for _, key := range []string{"env", "tier"} {
				m.clusters[c].labels[key] = labelValues[key][f.random.IntN(2)]
			}
		}
		for s := range m.stacks {
			m.stacks[s].exists, m.stacks[s].selector = true, selectors[f.random.IntN(len(selectors))]
		}
		for k := range components {
			s := k
			if k >= stacks {
				s = f.random.IntN(stacks)
			}
			m.stacks[s].has[k] = true
		}
	}, func() {
		f.writeValues()
		for c := range f.workloads {
			f.writeCluster(c)
		}
		for s := range stacks {
			f.writeStack(s)
		}
	})
	f.awaitWanted(2*time.Minute, "all is installed at first", false)
}

func (f *fleet) hubBackupOrRestore() bool {
	if f.backup == nil || f.random.IntN(2) == 0 {
		f.act("back up the management cluster")
		f.backUpHub()
	} else {
		f.act("restore the management cluster")
		f.restoreHub()
	}
	return true
}

func (f *fleet) clusterBackupOrRestore() bool {
	c := f.random.IntN(len(f.workloads))
	if f.links[c] == paused || f.links[c] == stopped {
		return false
	}
	if b := f.backups[c]; b == nil || f.random.IntN(3) == 0 {
		f.act("back up %s", clusterName(c))
		f.backups[c] = f.backUpCluster(c)
	} else {
		f.act("restore %s", clusterName(c))
		f.restoreCluster(c, b)
	}
	return true
}

func (f *fleet) moveAction() bool {
	f.act("move to the other management cluster")
	f.moveNow()
	return true
}
