// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/must"
)

// lifeCycle is the life of two add-ons on one cluster, the second of which depends on the
// first: they are installed, upgraded and removed. Each step can be disturbed at one of its
// writes to the workload cluster, or to the management cluster.
type lifeCycle struct {
	*tenant
	server  *server
	proxy   *proxy
	one     string // path of the chart
	two     string
	after   string // path of the second add-on's chart
	disturb disturbance
	cluster string
	step    string
	begin   mark
	writes  map[string]int // to the workload cluster, by step
	kept    map[string]int // to the management cluster
	content map[string]map[string]string
}

// disturbance sets a trap for a write of a step that is about to begin, and
// returns what is to be done once it has begun.
type disturbance func(l *lifeCycle, at crashPoint) (recovered func())

var steps = []string{"install", "upgrade", "removal"}

func newLifeCycle(t *testing.T, name string, disturb disturbance) *lifeCycle {
	t.Helper()
	l := &lifeCycle{tenant: newTenant(t), cluster: name, disturb: disturb, server: workloadServer(t, 1), writes: map[string]int{}, kept: map[string]int{}, content: map[string]map[string]string{}}
	l.one = l.writeChart("crashing", "1.0.0", crashingChart("one", l.namespace))
	l.two = l.writeChart("crashing", "2.0.0", crashingChart("two", l.namespace))
	l.after = l.writeChart("dependent", "1.0.0", chart{"templates/cm.yaml": configMap("dependent", "same")})
	l.begin = l.server.mark(t)
	l.proxy = l.startProxy(name, l.server)
	l.makeClusterObject(name, labels("env=prod"))
	user, err := world.hub.AddUser(l.user)
	must.Succeed(t, err)
	l.hub = l.proxyAs(user)
	l.hub.counts = isWriteOfAddons
	l.startManager()
	return l
}

// run goes through all steps, with a disturbance in each.
func (l *lifeCycle) run(at crashPoint) {
	l.t.Helper()
	l.do("install", at, func() {
		dependent := l.addon("dependent", l.after)
		dependent.DependsOn = []string{"crashing"}
		l.makeStack("platform", labels("env=prod"), l.addon("crashing", l.one), dependent)
	}, func() {
		l.awaitReady("platform", "the installation is to be finished after a disturbance")
	})
	l.expectRuns("pre-install", 1)
	l.expectRuns("post-install", 1)

	l.do("upgrade", at, func() {
		l.changeAddon("platform", "crashing", func(a *addonsv1.Addon) { a.Chart.Path = l.two })
	}, func() {
		l.awaitReady("platform", "the upgrade is to be finished after a disturbance")
	})
	l.expectRuns("pre-upgrade", 1)
	l.expectRunsOf("post-upgrade", 0, 1) // its policy deletes it when it has succeeded

	l.do("removal", at, func() {
		l.remove(l.newStack("platform", nil))
	}, func() {
		poll(l.t, patience, "the removal is to be finished after a disturbance", func() error {
			for _, name := range []string{"crashing", "dependent"} {
				if r := l.server.release(l.t, l.namespace, name); r.revision != 0 {
					return fmt.Errorf("release %s is %s at revision %d", name, r.status, r.revision)
				}
			}
			return nil
		})
	})
	l.expectRuns("post-delete", 1)
}

// do takes one step, with a disturbance if the step has as many writes.
func (l *lifeCycle) do(step string, at crashPoint, begin, finish func()) {
	l.t.Helper()
	l.step = step
	l.proxy.countWrites()
	l.hub.countWrites()
	recovered := func() {}
	if at.write > 0 {
		recovered = l.disturb(l, at)
	}
	begin()
	recovered()
	finish()
	l.settle()
	l.writes[step], l.kept[step] = len(l.proxy.seen()), len(l.hub.seen())
	l.content[step] = l.server.contents(l.t, l.namespace).texts(l.t, l.namespace)
}

// untilSprung returns when the trap of the step has sprung, or false when the
// step has ended: it may have fewer writes than the trap waits for.
func (l *lifeCycle) untilSprung(p *proxy, sprung <-chan struct{}) bool {
	l.t.Helper()
	did := false
	poll(l.t, patience, "the manager is to reach the write, or the end of "+l.step, func() error {
		select {
		case <-sprung:
			did = true
			return nil
		default:
		}
		a, err := l.manager.Activity()
		if err == nil && a.Backlog == 0 && l.stepDone() {
			return nil
		}
		return fmt.Errorf("%d writes so far", len(p.seen()))
	})
	seen := p.seen()
	if did {
		l.t.Logf("%s: disturbed at %s", l.step, seen[len(seen)-1])
	} else {
		l.t.Logf("%s: has only %d writes", l.step, len(seen))
	}
	return did
}

// stepDone says whether the step has ended without a crash.
func (l *lifeCycle) stepDone() bool {
	r := l.server.release(l.t, l.namespace, "crashing")
	switch l.step {
	case "install":
		return r.revision == 1 && r.status == "deployed"
	case "upgrade":
		return r.revision == 2 && r.status == "deployed"
	default:
		return r.revision == 0 && l.server.release(l.t, l.namespace, "dependent").revision == 0
	}
}

// expectRuns counts the Jobs that a hook made and left: in the cluster, and in the audit log.
func (l *lifeCycle) expectRuns(hook string, runs int) {
	l.t.Helper()
	l.expectRunsOf(hook, runs, runs)
}

func (l *lifeCycle) expectRunsOf(hook string, left, runs int) {
	l.t.Helper()
	jobs, err := l.server.clientset.BatchV1().Jobs(l.namespace).List(l.t.Context(), metav1.ListOptions{LabelSelector: "hook=" + hook})
	must.Succeed(l.t, err)
	l.Expect(jobs.Items).To(HaveLen(left), "Jobs of hook %s that are left", hook)
	events := l.begin.requests(l.t, l.clusterUser(l.cluster))
	created := creations(events, "jobs", hook)
	l.Expect(created).To(HaveLen(runs), "hook %s runs once for one revision", hook)
}

// expectSame compares what was in the cluster after each step with a life cycle
// that wasn't disturbed.
func (l *lifeCycle) expectSame(undisturbed *lifeCycle, at crashPoint) {
	l.t.Helper()
	for _, step := range steps {
		got, want := l.content[step], undisturbed.content[step]
		l.Expect(slices.Sorted(maps.Keys(got))).To(Equal(slices.Sorted(maps.Keys(want))),
			"disturbed %s of %s, the same objects are to be there as without: none lost, none left over", at, step)
		for object, text := range want {
			l.Expect(got[object]).To(Equal(text), "disturbed %s of %s, the content of %s is to be that of a run without", at, step, object)
		}
	}
}
