// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-chandler/chandler/test/long"
)

// stride is the distance between the writes at which the manager dies in a
// normal run.
const stride = 5

// TestCrash kills the manager at the k-th write to the workload cluster, or to the
// management cluster. It does so before or after the server has answered the write, and
// compares what comes of it with an undisturbed run.
func TestCrash(t *testing.T) {
	long.Test(t)
	t.Parallel()
	undisturbed := newLifeCycle(t, "undisturbed", nil)
	undisturbed.run(crashPoint{})
	g := NewWithT(t)
	g.Expect(sortedKeys(undisturbed.content["install"])).To(ContainElements(
		ContainSubstring("CustomResourceDefinition.apiextensions.k8s.io /things."), ContainSubstring("CustomResourceDefinition.apiextensions.k8s.io /gadgets."),
		ContainSubstring("Thing."), ContainSubstring("Deployment.apps"), ContainSubstring("/dependent"),
		ContainSubstring("/only-in-one"), ContainSubstring("sh.helm.release.v1.crashing.v1")), "else the comparison would say little")
	g.Expect(sortedKeys(undisturbed.content["upgrade"])).NotTo(ContainElement(ContainSubstring("/only-in-one")))
	g.Expect(sortedKeys(undisturbed.content["removal"])).To(HaveEach(Or(HavePrefix("Job.batch "), ContainSubstring(" /gadgets."), Equal("Namespace. /NAMESPACE"))),
		"but for the Jobs of hooks, what is in crds/, and the namespace, which Helm leaves, too, nothing stays")
	writes, kept := 0, 0
	for _, step := range steps {
		t.Logf("%s takes %d writes to the workload cluster, %d to the management cluster", step, undisturbed.writes[step], undisturbed.kept[step])
		writes, kept = max(writes, undisturbed.writes[step]), max(kept, undisturbed.kept[step])
	}
	for _, at := range append(crashPoints(writes, false), crashPoints(kept, true)...) {
		t.Run(at.String(), func(t *testing.T) {
			t.Parallel()
			l := newLifeCycle(t, fmt.Sprintf("crash-%d", at.write), crash)
			l.run(at)
			l.expectSame(undisturbed, at)
		})
	}
}

// crash kills the manager, and starts another one.
func crash(l *lifeCycle, at crashPoint) func() {
	p := l.proxy
	if at.management {
		p = l.hub
	}
	died, victim := make(chan struct{}), l.manager
	p.atWrite(at.write, at.answered, func() { victim.kill(); close(died) })
	return func() {
		if l.untilSprung(p, died) {
			l.startManager()
		}
	}
}

// crashPoint is where each step of a life cycle is disturbed.
type crashPoint struct {
	write      int // from 1; 0 for nowhere
	answered   bool
	management bool // a write to the management cluster
}

// String implements fmt.Stringer.
func (p crashPoint) String() string {
	when, where := "before", "workload"
	if p.answered {
		when = "after"
	}
	if p.management {
		where = "management"
	}
	return fmt.Sprintf("%s %s write %d", when, where, p.write)
}

// crashPoints returns points that are spread over the writes of a step.
func crashPoints(total int, management bool) []crashPoint {
	var points []crashPoint
	if os.Getenv("CHANDLER_E2E_EVERY_WRITE") != "" {
		for k := 1; k <= total; k++ {
			points = append(points, crashPoint{k, false, management}, crashPoint{k, true, management})
		}
		return points
	}
	for k := 1; k <= total; k += stride {
		points = append(points, crashPoint{k, k%2 == 0, management})
	}
	return points
}
