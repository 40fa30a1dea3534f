// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/must"
)

var labelValues = map[string][]string{"env": {"prod", "test", "prod", "test", "none"}, "tier": {"gold", "silver"}}

// relabel gives a Cluster another label.
func (f *fleet) relabel() bool {
	c, key := f.random.IntN(len(f.workloads)), []string{"env", "tier"}[f.random.IntN(2)]
	value := labelValues[key][f.random.IntN(len(labelValues[key]))]
	if !f.now().clusters[c].exists || f.now().clusters[c].labels[key] == value {
		return false
	}
	f.act("label %s %s=%s", clusterName(c), key, value)
	f.change(func(m *model) { m.clusters[c].labels[key] = value }, func() {
		f.patch(f.hub(), &clusterv1.Cluster{ObjectMeta: f.named(clusterName(c))}, fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, key, value))
	})
	return true
}

// toggleCluster deletes a Cluster, which leaves the workload cluster as it is, or makes one again.
func (f *fleet) toggleCluster() bool {
	c := f.random.IntN(len(f.workloads))
	if gone := f.now().goneCluster(); gone >= 0 && f.random.IntN(3) > 0 {
		c = gone
	}
	exists := f.now().clusters[c].exists
	f.act("make %s: %t", clusterName(c), !exists)
	f.change(func(m *model) {
		m.clusters[c].exists, m.clusters[c].paused = !exists, false
		m.clusters[c].epoch++
	}, func() {
		if !exists {
			f.writeCluster(c)
			return
		}
		f.remove(f.hub(), &clusterv1.Cluster{ObjectMeta: f.named(clusterName(c))})
		// Its owner is gone. The garbage collector may take its time.
		f.remove(f.hub(), &addonsv1.ClusterAddon{ObjectMeta: f.named(clusterName(c))})
	})
	return true
}

// goneCluster returns a cluster that isn't there, -1 if all are.
func (m *model) goneCluster() int {
	return slices.IndexFunc(m.clusters, func(c cluster) bool { return !c.exists })
}

// replenish brings back as much as is possible of a fleet that has little left.
func (f *fleet) replenish() {
	f.t.Helper()
	for s := f.now().goneStack(); s >= 0; s = f.now().goneStack() {
		f.makeStack(s)
	}
	for f.now().goneCluster() >= 0 {
		f.toggleCluster()
	}
	for f.add() {
		continue
	}
	s := f.random.IntN(stacks)
	f.act("have %s select all", stackName(s))
	f.editStack(s, func(m *model) { m.stacks[s].selector = map[string]string{} })
}

// confirm confirms all removals that are held on a cluster, or on all of them.
func (f *fleet) confirm() bool {
	c, isAll := f.random.IntN(len(f.workloads)), f.random.IntN(2) == 0
	f.act("confirm what is held on %s, on all: %t", clusterName(c), isAll)
	for i := range f.workloads {
		if i == c || isAll {
			f.confirmOn(i)
		}
	}
	return true
}

// confirmOn confirms all that is held on a cluster, and returns how much that is.
func (f *fleet) confirmOn(c int) (held int) {
	f.t.Helper()
	ca := &addonsv1.ClusterAddon{ObjectMeta: f.named(clusterName(c))}
	if err := f.hub().Get(f.ctx(), client.ObjectKeyFromObject(ca), ca); client.IgnoreNotFound(err) != nil {
		f.t.Fatal(err)
	}
	given, of := "", map[string]bool{}
	for _, s := range ca.Spec.Stacks {
		if s.HeldRemoval != nil {
			given, of[s.Name] = given+","+s.HeldRemoval.Confirmation, true
		}
	}
	if given == "" {
		return 0
	}
	f.change(func(m *model) {
		for k := range components {
			is := m.shares[share{c, k}]
			is.excused = is.excused || is.standing == lost && of[stackName(is.stack)]
			for s, gives := range is.givers {
				is.excused = is.excused || gives && of[stackName(s)]
			}
			m.shares[share{c, k}] = is
		}
	}, func() {
		edit(f, ca, func(o *addonsv1.ClusterAddon) {
			metav1.SetMetaDataAnnotation(&o.ObjectMeta, addonsv1.ConfirmRemovalAnnotation, given[1:])
		})
	})
	return len(of)
}

// restart kills the manager, and starts it now or at another time.
func (f *fleet) restart() bool {
	if f.managers[f.active] == nil {
		f.act("start the manager")
		f.start(f.active)
		return true
	}
	isNow := f.random.IntN(2) == 0
	f.act("kill the manager, and start it at once: %t", isNow)
	f.kill(f.active)
	if isNow {
		f.start(f.active)
	}
	return true
}

// unlink has a cluster disappear in one of several ways, or return.
func (f *fleet) unlink() bool {
	c := f.random.IntN(len(f.workloads))
	if f.links[c] != linked {
		f.act("%s returns", clusterName(c))
		f.link(c)
		return true
	}
	to := []link{paused, paused, stopped, misled, without}[f.random.IntN(5)]
	f.act("%s is %s", clusterName(c), to)
	j := f.evaluates[c]
	j.evaluate()
	f.links[c] = to
	var err error
	switch to {
	case paused:
		j.pause = time.Now()
		err = f.workloads[c].PauseAPIServer()
	case stopped:
		err = f.workloads[c].StopAPIServer()
	default:
		if f.now().clusters[c].exists {
			f.writeKubeconfig(c)
		}
	}
	must.Succeed(f.t, err)
	return true
}

// link has a cluster return.
func (f *fleet) link(c int) {
	f.t.Helper()
	was := f.links[c]
	f.links[c] = linked
	var err error
	switch was {
	case paused:
		f.evaluates[c].resumed = time.Now()
		err = f.workloads[c].ResumeAPIServer()
	case stopped:
		err = f.workloads[c].StartAPIServer(f.ctx())
	default:
		if f.now().clusters[c].exists {
			f.writeKubeconfig(c)
		}
	}
	must.Succeed(f.t, err)
}
