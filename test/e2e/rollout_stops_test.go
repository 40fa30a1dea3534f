// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	illness "github.com/cluster-chandler/chandler/internal/health"
	"github.com/cluster-chandler/chandler/test/long"
)

// rollsOut returns an edit of spec.rollout.
func rollsOut(rollout addonsv1.Rollout) func(*addonsv1.AddonStackSpec) {
	return func(spec *addonsv1.AddonStackSpec) { spec.Rollout = &rollout }
}

// stays expects that a number of clusters stays at the target for some time.
func (r *rolling) stays(phase addonsv1.RolloutPhase, updated int32, reason string) {
	r.t.Helper()
	s := r.awaitPhase(phase, updated, reason)
	r.settle()
	r.Expect(r.at(s.Status.Rollout.Revision)).To(HaveLen(int(updated)), reason)
}

// TestRolloutWaits has a rollout wait for a window, for a stack that isn't paused any more, for a cluster that is held, and
// for one that is paused. Nothing starts meanwhile, also after a restart.
func TestRolloutWaits(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	r := newRolling(t, "wait", 3)
	before := r.latestRevision("platform")
	newYear := addonsv1.RolloutWindow{Start: "0 0 1 1 *", Duration: metav1.Duration{Duration: 10 * time.Minute}}
	r.edit("two", "none", rollsOut(addonsv1.Rollout{MaxConcurrent: ofNumber(3), Windows: []addonsv1.RolloutWindow{newYear}}))
	r.stays(addonsv1.RolloutWaitingForWindow, 0, "no window is open")

	held, paused := "wait-0", "wait-1"
	r.annotate(&addonsv1.ClusterAddon{}, held, addonsv1.HoldRolloutAnnotation, "other, platform")
	r.pauseCluster(paused, true)
	r.awaitCluster(paused, "it is paused", condition(addonsv1.PausedCondition, metav1.ConditionTrue, addonsv1.PausedReason, ""))
	r.annotate(&addonsv1.AddonStack{}, "platform", clusterv1.PausedAnnotation, "true")
	r.changeStack("platform", rollsOut(addonsv1.Rollout{MaxConcurrent: ofNumber(3)}))
	r.stays(addonsv1.RolloutPaused, 0, "the stack is paused")
	r.stopManager()
	r.startManager()
	r.stays(addonsv1.RolloutPaused, 0, "a restart changes nothing")

	r.annotate(&addonsv1.AddonStack{}, "platform", clusterv1.PausedAnnotation, "")
	s := r.awaitPhase(addonsv1.RolloutCompleted, 1, "what is away comes later")
	away := int32(0)
	for _, wave := range s.Status.Rollout.Waves {
		away += wave.Away
	}
	r.Expect(away).To(Equal(int32(2)))
	r.Expect(conditions.GetMessage(s, addonsv1.RolledOutCondition)).To(ContainSubstring("wait-0, wait-1"))
	r.edit("three", "none")
	r.awaitPhase(addonsv1.RolloutCompleted, 1, "the next edit")
	r.settle()
	r.Expect(r.at(before)).To(Equal([]string{held, paused}), "they stay out of it, too")
	r.annotate(&addonsv1.ClusterAddon{}, held, addonsv1.HoldRolloutAnnotation, "")
	r.awaitPhase(addonsv1.RolloutCompleted, 2, "the hold is off")
	r.pauseCluster(paused, false)
	r.awaitPhase(addonsv1.RolloutCompleted, 3, "the pause is over")
	r.awaitReady("platform", "all have it")
}

// TestRolloutHalts brings an edit that fails to one cluster after the other: it halts after the first one. Somebody gives it
// up, tries it again, and continues for all its failures.
func TestRolloutHalts(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	r := newRolling(t, "halt", 3)
	before := r.latestRevision("platform")
	inOneWave := []addonsv1.RolloutWave{{Name: "all", Size: ptr.To(intstr.FromString("100%"))}}
	r.edit("two", "env", rollsOut(addonsv1.Rollout{MaxConcurrent: ofNumber(1), Waves: inOneWave}))
	s := r.awaitPhase(addonsv1.RolloutHalted, 1, "one failed, and none may")
	bad := s.Status.Rollout.Revision
	r.Expect(r.at(bad)).To(HaveLen(1))
	r.Expect(conditions.GetReason(s, addonsv1.ReadyCondition)).To(Equal(string(addonsv1.RolloutHalted)))
	r.Expect(conditions.GetMessage(s, addonsv1.ReadyCondition)).To(And(ContainSubstring(r.at(bad)[0]), ContainSubstring("rollout reject -n "+r.namespace+" platform")))

	r.annotateRevision(bad, addonsv1.RolloutRejectedAnnotation, "INC-4711")
	s = r.awaitPhase(addonsv1.RolloutRolledBack, 3, "it is given up")
	r.Expect(s.Status.Rollout.Revision).To(Equal(bad))
	r.Expect(r.at(before)).To(HaveLen(3))
	r.Expect(conditions.GetMessage(s, addonsv1.RolledOutCondition)).To(ContainSubstring("INC-4711"))
	for _, name := range r.at(before) {
		r.awaitCluster(name, "it is as before", ready("settings"))
	}

	r.annotateRevision(bad, addonsv1.RolloutRejectedAnnotation, "")
	r.awaitPhase(addonsv1.RolloutProgressing, 1, "it is tried again")
	r.changeStack("platform", rollsOut(addonsv1.Rollout{MaxConcurrent: ofNumber(3), MaxFailed: ofNumber(2), Waves: inOneWave}))
	r.awaitPhase(addonsv1.RolloutHalted, 3, "two may fail, and three did")
}

// TestRolloutBudget has clusters that can't be reached before, and one whose add-on failed before. They use up nothing of
// maxFailed. If two of the others fail, and one may, the rollout halts.
func TestRolloutBudget(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	const well, poor, maxFailed, maxConcurrent = 2, 6, 1, 2
	dead := environmentNumber(t, "CHANDLER_ROLLOUT_DEAD", 5)
	r := newRolling(t, "budget", well+poor)
	for i := range dead {
		r.makeClusterObject(fmt.Sprint("budget-dead-", i), labels("env=prod"))
	}
	for i := range poor {
		more := labels("env=prod", "poor=yes")
		if i == 0 {
			more["broken"] = "yes"
		}
		name := fmt.Sprint("budget-", i)
		change(r.tenant, newCluster(r.namespace, name, nil), func(c *clusterv1.Cluster) { c.Labels = more })
	}
	r.edit("two", "broken")
	r.awaitCluster("budget-0", "it fails before", phase("settings", addonsv1.AddonFailed, "", ""))
	for i := range well + poor - 1 {
		r.awaitCluster(fmt.Sprint("budget-", i+1), "all others are well", ready("settings"))
	}

	r.edit("three", "poor", rollsOut(addonsv1.Rollout{MaxConcurrent: ofNumber(maxConcurrent), MaxFailed: ofNumber(maxFailed), Waves: []addonsv1.RolloutWave{{Name: "all", Size: ptr.To(intstr.FromString("100%"))}}}))
	s := r.newStack("platform", nil)
	await(t, world.hub, s, 4*patience, "a second one failed", func(s *addonsv1.AddonStack) error {
		if is := s.Status.Rollout; is == nil || is.Phase != addonsv1.RolloutHalted {
			return fmt.Errorf("%+v", is)
		}
		return nil
	})
	wave := s.Status.Rollout.Waves[0]
	r.Expect(wave.Failed).To(And(BeNumerically(">", maxFailed), BeNumerically("<=", maxFailed+maxConcurrent)), "others were under way: %+v", wave)
	r.Expect(wave.Away).To(BeEquivalentTo(dead))
	r.Expect(wave.Updated).To(BeNumerically("<=", well+poor-1), "the third one of them never starts")
	at := r.at(s.Status.Rollout.Revision)
	r.settle()
	r.Expect(r.at(s.Status.Rollout.Revision)).To(Equal(at), "no other starts")
	r.Expect(s.Status.Conditions).To(ContainElement(And(HaveField("Type", addonsv1.RolledOutCondition), HaveField("Status", metav1.ConditionFalse))))
	t.Logf("%d clusters that were dead before, 1 that failed before, %d that failed: %d have it", dead, wave.Failed, wave.Updated)
}

// TestRolloutSeesACrashLoop has a Deployment of the canary crash two minutes after it was ready, while the wave soaks. The
// next wave never begins, also once that time is over, and the cluster is named.
func TestRolloutSeesACrashLoop(t *testing.T) {
	long.InCI(t)
	t.Parallel()
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
	d := &drifting{tenant: r.tenant, s: servers[canary]}
	d.breakPod("CrashLoopBackOff")
	r.awaitCluster(canary, "a pod crashes", phase("web", addonsv1.AddonDegraded, illness.ReasonCrashLoopBackOff, ""))
	s = r.awaitPhase(addonsv1.RolloutHalted, 1, "the wave isn't well any more")
	g.Expect(conditions.GetMessage(s, addonsv1.RolledOutCondition)).To(ContainSubstring(canary))
	r.pass(canary, 2*time.Hour)
	r.settle()
	r.awaitPhase(addonsv1.RolloutHalted, 1, "the soak's time is over")
	g.Expect(r.at(before)).To(Equal(other), "the next wave never begins")
}
