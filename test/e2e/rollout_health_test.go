// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	illness "github.com/cluster-chandler/chandler/internal/health"
)

// TestRolloutSeesACrashLoop has a Deployment of the canary crash two minutes after it was ready, while the wave soaks. The
// next wave never begins, also once that time is over, and the cluster is named.
func TestRolloutSeesACrashLoop(t *testing.T) {
	g := NewWithT(t)
	r := &rolling{tenant: newTenant(t), name: "loop"}
	path := r.writeChart("web", "1.0.0", webChart)
	servers := map[string]*server{}
	for i := range 2 {
		name := fmt.Sprint("loop-", i)
		servers[name] = workloadServer(t, i)
		r.makeCluster(name, servers[name], labels("env=prod"))
	}
	r.startManager()
	two := withValues(map[string]any{"replicas": 2})
	r.makeStack("platform", labels("env=prod"), r.addon("web", path, two))
	r.setDegradedAfter("platform", degradedSoon)
	r.awaitReady("platform", "two replicas each")
	before := r.latestRevision("platform")

	r.changeStack("platform", func(spec *addonsv1.AddonStackSpec) {
		rollsOut(addonsv1.Rollout{Waves: []addonsv1.RolloutWave{{Name: "canary", Size: ofNumber(1), Soak: &metav1.Duration{Duration: time.Hour}}}})(spec)
		withValues(map[string]any{"replicas": 2, "tag": "2"})(&spec.Addons[0])
	})
	s := r.awaitPhase(addonsv1.RolloutSoaking, 1, "the canary is ready")
	canary, other := r.at(s.Status.Rollout.Revision)[0], r.at(before)
	r.settle()
	r.pass(canary, 2*time.Minute)
	r.awaitPhase(addonsv1.RolloutSoaking, 1, "it has been ready for two minutes")
	d := &drifting{tenant: r.tenant, WithT: g, s: servers[canary]}
	d.breakPod("CrashLoopBackOff")
	r.awaitCluster(canary, "a pod crashes", phase("web", addonsv1.AddonDegraded, illness.ReasonCrashLoopBackOff, ""))
	s = r.awaitPhase(addonsv1.RolloutHalted, 1, "the wave isn't well any more")
	g.Expect(conditions.GetMessage(s, addonsv1.RolledOutCondition)).To(ContainSubstring(canary))
	r.pass(canary, 2*time.Hour)
	r.settle()
	r.awaitPhase(addonsv1.RolloutHalted, 1, "the soak's time is over")
	g.Expect(r.at(before)).To(Equal(other), "the next wave never begins")
}
