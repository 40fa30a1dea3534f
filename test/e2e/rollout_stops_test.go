// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
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
	NewWithT(r.t).Expect(r.at(s.Status.Rollout.Revision)).To(HaveLen(int(updated)), reason)
}

// TestRolloutWaits has a rollout wait for a window, for a stack that isn't paused any more, for a cluster that is held, and
// for one that is paused. Nothing starts meanwhile, also after a restart.
func TestRolloutWaits(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	r := newRolling(t, "wait", 3)
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
	g.Expect(s.Status.Rollout.Waves).To(ConsistOf(HaveField("Away", int32(2))))
	g.Expect(conditions.GetMessage(s, addonsv1.RolledOutCondition)).To(ContainSubstring("wait-0, wait-1"))
	r.annotate(&addonsv1.ClusterAddon{}, held, addonsv1.HoldRolloutAnnotation, "")
	r.awaitPhase(addonsv1.RolloutCompleted, 2, "the hold is off")
	r.pauseCluster(paused, false)
	r.awaitPhase(addonsv1.RolloutCompleted, 3, "the pause is over")
	r.awaitReady("platform", "all have it")
}

// TestRolloutHalts brings an edit that fails to one cluster after the other: it halts after the first one. Somebody gives it
// up, tries it again, and continues for all its failures.
func TestRolloutHalts(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	r := newRolling(t, "halt", 3)
	before := r.latestRevision("platform")
	r.edit("two", "env", rollsOut(addonsv1.Rollout{MaxConcurrent: ofNumber(1)}))
	s := r.awaitPhase(addonsv1.RolloutHalted, 1, "one failed, and none may")
	bad := s.Status.Rollout.Revision
	g.Expect(r.at(bad)).To(HaveLen(1))
	g.Expect(conditions.GetReason(s, addonsv1.ReadyCondition)).To(Equal(string(addonsv1.RolloutHalted)))
	g.Expect(conditions.GetMessage(s, addonsv1.ReadyCondition)).To(And(ContainSubstring(r.at(bad)[0]), ContainSubstring(addonsv1.RolloutRejectedAnnotation)))

	r.annotateRevision(bad, addonsv1.RolloutRejectedAnnotation, "INC-4711")
	s = r.awaitPhase(addonsv1.RolloutRolledBack, 3, "it is given up")
	g.Expect(s.Status.Rollout.Revision).To(Equal(before))
	g.Expect(conditions.GetMessage(s, addonsv1.RolledOutCondition)).To(ContainSubstring("INC-4711"))
	for _, name := range r.at(before) {
		r.awaitCluster(name, "it is as before", ready("settings"))
	}

	r.annotateRevision(bad, addonsv1.RolloutRejectedAnnotation, "")
	r.awaitPhase(addonsv1.RolloutProgressing, 1, "it is tried again")
	r.changeStack("platform", rollsOut(addonsv1.Rollout{MaxConcurrent: ofNumber(3), MaxFailed: ofNumber(2)}))
	r.awaitPhase(addonsv1.RolloutHalted, 3, "two may fail, and three did")
}
