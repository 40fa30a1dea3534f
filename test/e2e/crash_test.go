// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"testing"

	. "github.com/onsi/gomega"
)

// stride is the distance between the writes at which the manager dies in a
// normal run.
const stride = 5

// TestCrash kills the manager at the k-th write to the workload cluster, before
// or after the server has answered it, and compares what comes of it with an
// undisturbed run.
func TestCrash(t *testing.T) {
	t.Parallel()
	undisturbed := newLifeCycle(t, "undisturbed", nil)
	undisturbed.run(crashPoint{})
	g := NewWithT(t)
	g.Expect(sortedKeys(undisturbed.content["install"])).To(ContainElements(
		ContainSubstring("CustomResourceDefinition."), ContainSubstring("Thing."), ContainSubstring("Deployment.apps"),
		ContainSubstring("/only-in-one"), ContainSubstring("sh.helm.release.v1.crashing.v1")), "else the comparison would say little")
	g.Expect(sortedKeys(undisturbed.content["upgrade"])).NotTo(ContainElement(ContainSubstring("/only-in-one")))
	g.Expect(sortedKeys(undisturbed.content["removal"])).To(HaveEach(HavePrefix("Job.batch ")), "but for the Jobs of hooks, which Helm leaves, too, nothing stays")
	total := 0
	for _, step := range steps {
		t.Logf("%s takes %d writes", step, undisturbed.writes[step])
		total = max(total, undisturbed.writes[step])
	}
	for _, at := range crashPoints(total) {
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
	died, victim := make(chan struct{}), l.manager
	l.proxy.atWrite(at.write, at.answered, func() { victim.kill(); close(died) })
	return func() {
		if l.untilSprung(died) {
			l.startManager()
		}
	}
}

// crashPoint is where each step of a life cycle is disturbed.
type crashPoint struct {
	write    int // from 1; 0 for nowhere
	answered bool
}

// String implements fmt.Stringer.
func (p crashPoint) String() string {
	if p.answered {
		return fmt.Sprintf("after write %d", p.write)
	}
	return fmt.Sprintf("before write %d", p.write)
}

// crashPoints are spread over the writes of a step.
func crashPoints(total int) []crashPoint {
	var points []crashPoint
	if os.Getenv("CHANDLER_E2E_EVERY_WRITE") != "" {
		for k := 1; k <= total; k++ {
			points = append(points, crashPoint{k, false}, crashPoint{k, true})
		}
		return points
	}
	for k := 1; k <= total; k += stride {
		points = append(points, crashPoint{k, k%2 == 0})
	}
	return points
}
