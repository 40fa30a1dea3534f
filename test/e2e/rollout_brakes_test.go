// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/test/long"
)

// canaryFirst is a rollout with a canary, and a wave of all others.
func canaryFirst(more ...func(*addonsv1.Rollout)) func(*addonsv1.AddonStackSpec) {
	spec := addonsv1.Rollout{MaxConcurrent: ofNumber(3), Waves: []addonsv1.RolloutWave{{Name: "canary", Size: ofNumber(1)}}}
	for _, m := range more {
		m(&spec)
	}
	return rollsOut(spec)
}

func rollsBack(r *addonsv1.Rollout) { r.OnFailure = addonsv1.RolloutRollBack }

// failLong has the failure of a cluster last for longer than the minute in which it is tried again.
func (r *rolling) failLong(cluster string) {
	r.t.Helper()
	r.awaitCluster(cluster, "it fails", phase("settings", addonsv1.AddonFailed, "", ""))
	r.pass(cluster, 2*time.Minute)
}

// TestRolloutThatIsAdded adds spec.rollout to a stack whose clusters all have the newest revision, and one of them failed
// before. No edit was made, so no cluster gets another revision, and nothing is halted.
func TestRolloutThatIsAdded(t *testing.T) {
	t.Parallel()
	r := newRolling(t, "added", 3)
	one := r.latestRevision("platform")
	r.relabel("added-0", "env=prod", "broken=yes")
	r.edit("two", "broken")
	two := ""
	poll(t, patience, "the edit is kept", func() error {
		if two = r.latestRevision("platform"); two == one {
			return errors.New("it isn't yet")
		}
		return nil
	})
	r.failLong("added-0")
	r.awaitTextOn([]string{"added-1", "added-2"}, "two", "they have the edit")

	r.changeStack("platform", canaryFirst(rollsBack))
	r.stays(addonsv1.RolloutWaitingForClusters, 3, "a failure from before the rollout rejects nothing")
	r.Expect(r.at(two)).To(HaveLen(3))
	r.Expect(r.marks(two)).NotTo(Or(HaveKey(addonsv1.RolloutRejectedAnnotation), HaveKey(addonsv1.RolloutHaltedAnnotation)))

	r.relabel("added-0", "env=prod")
	r.awaitPhase(addonsv1.RolloutCompleted, 3, "it is well, so all are ready")
	r.edit("three", "env")
	r.awaitPhase(addonsv1.RolloutProgressing, 1, "the canary has it")
	three := r.latestRevision("platform")
	r.failLong(r.at(three)[0])
	r.awaitPhase(addonsv1.RolloutRolledBack, 3, "it is rejected")
	r.Expect(r.at(two)).To(HaveLen(3), "the time without a rollout counts: nobody gets the first revision")
}

// TestRolloutComesBack has a rejected revision reach all clusters without a rollout. A rollout that comes back later takes it
// from nobody.
func TestRolloutComesBack(t *testing.T) {
	t.Parallel()
	r := newRolling(t, "again", 2)
	r.relabel("again-0", "env=prod", "broken=yes")
	r.relabel("again-1", "env=prod", "broken=yes")
	r.edit("two", "broken", canaryFirst(rollsBack))
	r.awaitPhase(addonsv1.RolloutProgressing, 1, "the canary has it")
	two := r.latestRevision("platform")
	r.failLong(r.at(two)[0])
	r.awaitPhase(addonsv1.RolloutRolledBack, 2, "it is rejected")

	r.relabel("again-0", "env=prod")
	r.relabel("again-1", "env=prod")
	r.changeStack("platform", func(spec *addonsv1.AddonStackSpec) { spec.Rollout = nil })
	r.awaitTextOn([]string{"again-0", "again-1"}, "two", "without a rollout all get it")
	r.awaitReady("platform", "all are well")
	r.changeStack("platform", canaryFirst(rollsBack))
	r.awaitPhase(addonsv1.RolloutCompleted, 2, "all have it")
	r.settle()
	r.Expect(r.at(two)).To(HaveLen(2))
	r.Expect(r.marks(two)).NotTo(HaveKey(addonsv1.RolloutRejectedAnnotation))
}

// TestHaltHolds pauses the failed cluster of a halted rollout to look at it, and has it be well for a moment. No other cluster
// starts, also after a restart, until a person resumes the rollout.
func TestHaltHolds(t *testing.T) {
	t.Parallel()
	r := newRolling(t, "holds", 3)
	r.relabel("holds-0", "env=prod", "broken=yes")
	r.relabel("holds-1", "env=prod", "broken=yes")
	r.relabel("holds-2", "env=prod", "broken=yes")
	r.edit("two", "broken", rollsOut(addonsv1.Rollout{MaxConcurrent: ofNumber(1), Waves: []addonsv1.RolloutWave{{Name: "all", Size: ptr.To(intstr.FromString("100%"))}}}))
	r.awaitPhase(addonsv1.RolloutProgressing, 1, "one has it")
	two := r.latestRevision("platform")
	failed := r.at(two)[0]
	r.failLong(failed)
	r.awaitPhase(addonsv1.RolloutHalted, 1, "it failed")

	r.pauseCluster(failed, true)
	r.awaitCluster(failed, "it is paused", condition(addonsv1.PausedCondition, metav1.ConditionTrue, addonsv1.PausedReason, ""))
	r.stays(addonsv1.RolloutHalted, 1, "a pause of the failed one ends no halt")
	r.pauseCluster(failed, false)
	r.relabel(failed, "env=prod")
	r.awaitCluster(failed, "it is well for a moment", ready("settings"))
	r.restart()
	r.stays(addonsv1.RolloutHalted, 1, "nor does that, or a restart")

	r.annotateRevision(two, addonsv1.RolloutHaltedAnnotation, "")
	r.awaitPhase(addonsv1.RolloutProgressing, 2, "a person resumes it")
	next := r.at(two)
	for _, name := range next {
		if name != failed {
			r.failLong(name)
		}
	}
	r.awaitPhase(addonsv1.RolloutHalted, 2, "the next one fails")
	r.changeStack("platform", func(spec *addonsv1.AddonStackSpec) { spec.Rollout.MaxFailed = ofNumber(3) })
	r.awaitPhase(addonsv1.RolloutProgressing, 3, "more may fail")
}

// TestRevertOfARevert brings back what was undone: it is an attempt of its own, with a canary and an approval, though the
// revision was completed and approved before. The step back itself is quick.
func TestRevertOfARevert(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	r := newRolling(t, "revert", 3)
	one := r.latestRevision("platform")
	r.edit("two", "none", approvedLate())
	two := r.awaitPhase(addonsv1.RolloutWaitingForApproval, 1, "the canary has it").Status.Rollout.Revision
	r.annotateRevision(two, addonsv1.RolloutApprovedAnnotation, "late")
	r.awaitPhase(addonsv1.RolloutCompleted, 3, "all have it")

	r.edit("one", "none")
	s := r.awaitPhase(addonsv1.RolloutCompleted, 3, "one step back needs no approval")
	r.Expect(s.Status.Rollout.Revision).To(Equal(one))
	r.Expect(r.attempt(one).Cause).To(Equal(rollout.Back))

	r.edit("two", "none")
	s = r.awaitPhase(addonsv1.RolloutWaitingForApproval, 1, "forth again needs one, and a canary")
	r.Expect(s.Status.Rollout.Revision).To(Equal(two))
	r.settle()
	r.Expect(r.at(two)).To(HaveLen(1))
}

// TestSecondEditGoesBackAlone has a second edit fail on its canary, while the first one waits for an approval. Only that
// cluster goes back, and it goes to the first edit.
func TestSecondEditGoesBackAlone(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	r := newRolling(t, "second", 4)
	zero := r.latestRevision("platform")
	r.edit("first edit", "none", rollsOut(addonsv1.Rollout{MaxConcurrent: ofNumber(3), OnFailure: addonsv1.RolloutRollBack, Waves: []addonsv1.RolloutWave{
		{Name: "canary", Size: ofNumber(1)}, {Name: "most", Size: ofNumber(2)}, {Name: "late", Size: ofNumber(1), Approval: addonsv1.RolloutApprovalRequired},
	}}))
	first := r.awaitPhase(addonsv1.RolloutWaitingForApproval, 3, "three of four have it").Status.Rollout.Revision
	since := world.hub.mark(t)
	r.edit("second edit", "env")
	r.awaitPhase(addonsv1.RolloutProgressing, 1, "the canary has the next one")
	second := r.latestRevision("platform")
	canary := r.at(second)[0]
	r.failLong(canary)
	r.awaitPhase(addonsv1.RolloutRolledBack, 4, "it is rejected")
	r.settle()
	r.Expect(r.at(first)).To(HaveLen(3))
	r.Expect(r.at(first)).To(ContainElement(canary))
	r.Expect(r.at(zero)).To(HaveLen(1))
	r.Expect(r.assignments(since)).To(Equal(map[string]int{canary: 2}), "nobody else is touched")
}

// TestUndoOutsideAWindow undoes an edit that broke clusters, after the window has closed: they go back at once.
func TestUndoOutsideAWindow(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	r := newRolling(t, "window", 2)
	r.relabel("window-0", "env=prod", "broken=yes")
	r.relabel("window-1", "env=prod", "broken=yes")
	r.edit("two", "broken", rollsOut(addonsv1.Rollout{MaxConcurrent: ofNumber(2), MaxFailed: ofNumber(2), Waves: []addonsv1.RolloutWave{{Name: "all", Size: ofNumber(2)}}}))
	for _, name := range []string{"window-0", "window-1"} {
		r.awaitCluster(name, "it fails", phase("settings", addonsv1.AddonFailed, "", ""))
	}
	r.changeStack("platform", func(spec *addonsv1.AddonStackSpec) {
		spec.Rollout.Windows = []addonsv1.RolloutWindow{{Start: "0 0 1 1 *", Duration: metav1.Duration{Duration: 10 * time.Minute}}}
	})
	r.edit("one", "none")
	r.awaitTextOn([]string{"window-0", "window-1"}, "one", "going back doesn't wait")
	r.awaitReady("platform", "all are well")
	r.edit("three", "none")
	r.stays(addonsv1.RolloutWaitingForWindow, 0, "an edit waits")
}

// TestGateStaysShut takes the approval out of spec.rollout while a wave waits for it: it counts from the next attempt on.
func TestGateStaysShut(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	r := newRolling(t, "gate", 3)
	r.edit("two", "none", approvedLate())
	two := r.awaitPhase(addonsv1.RolloutWaitingForApproval, 1, "the canary has it").Status.Rollout.Revision
	for _, opens := range []func(*addonsv1.AddonStackSpec){
		func(spec *addonsv1.AddonStackSpec) { spec.Rollout.Waves[1].Approval = addonsv1.RolloutApprovalNone },
		func(spec *addonsv1.AddonStackSpec) { spec.Rollout.Waves = spec.Rollout.Waves[:1] },
		func(spec *addonsv1.AddonStackSpec) { spec.Rollout.Waves[0].Size = ofNumber(3) },
	} {
		r.changeStack("platform", opens)
		s := r.awaitPhase(addonsv1.RolloutWaitingForApproval, 1, "the gate of this attempt stays shut")
		r.Expect(s.Status.Rollout.Revision).To(Equal(two))
	}
	r.settle()
	r.Expect(r.at(two)).To(HaveLen(1))
	r.edit("three", "none")
	r.awaitPhase(addonsv1.RolloutCompleted, 3, "the next attempt has no gate")
}

// TestHoldWithoutARollout holds a cluster at its revision: an edit reaches the others alone, and the stack says who is held.
func TestHoldWithoutARollout(t *testing.T) {
	t.Parallel()
	r := newRolling(t, "held", 2)
	before := r.latestRevision("platform")
	r.annotate(&addonsv1.ClusterAddon{}, "held-0", addonsv1.HoldRolloutAnnotation, "platform")
	r.edit("two", "none")
	r.awaitTextOn([]string{"held-1"}, "two", "the other one has it")
	s := r.awaitReady("platform", "each has what it is meant to have")
	r.Expect(conditions.GetMessage(s, addonsv1.ClustersReadyCondition)).To(ContainSubstring("held-0"))
	r.Expect(r.at(before)).To(Equal([]string{"held-0"}))
	r.annotate(&addonsv1.ClusterAddon{}, "held-0", addonsv1.HoldRolloutAnnotation, "")
	r.awaitTextOn([]string{"held-0"}, "two", "the hold is off")
}
