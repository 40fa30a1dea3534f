// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
)

func orphans(spec *addonsv1.AddonStackSpec) { spec.DeletionPolicy = addonsv1.DeletionPolicyOrphan }

// assignedWith expects the stack in the assignment of a cluster, with the policy.
func assignedWith(policy addonsv1.DeletionPolicy) clusterCheck {
	return func(ca *addonsv1.ClusterAddon) error {
		if len(ca.Spec.Stacks) == 1 && ca.Spec.Stacks[0].DeletionPolicy == policy {
			return nil
		}
		return fmt.Errorf("%+v", ca.Spec.Stacks)
	}
}

// leftBehind expects that nothing of a stack is assigned, or in the status.
func leftBehind(ca *addonsv1.ClusterAddon) error {
	if len(ca.Spec.Stacks) > 0 || len(ca.Status.Addons) > 0 || len(ca.Status.Stacks) > 0 {
		return fmt.Errorf("%+v, %+v", ca.Spec.Stacks, ca.Status.Addons)
	}
	return nil
}

// expectLeft expects that a cluster was let go of, and its release is there.
func (tn *tenant) expectLeft(cluster string, s *server, deletions func() []string) {
	tn.t.Helper()
	tn.awaitCluster(cluster, "the stack leaves its add-ons behind", leftBehind)
	tn.settle()
	tn.Expect(deletions()).To(BeEmpty(), "the stack said Orphan")
	tn.Expect(s.release(tn.t, tn.namespace, "settings")).To(Equal(releaseState{1, "deployed"}))
	found := &corev1.ConfigMap{ObjectMeta: tn.named("settings")}
	tn.Expect(s.Get(tn.t.Context(), tn.key("settings"), found)).To(Succeed())
	tn.Expect(found.Labels).NotTo(HaveKey(addonsv1.AddonNamespaceLabel), "it was let go of")
}

// isDeleted deletes stack platform, and returns when its add-ons would have gone from the server.
func (tn *tenant) isDeleted(s *server) {
	tn.t.Helper()
	tn.remove(tn.newStack("platform", nil))
	tn.Consistently(func() int { return s.release(tn.t, tn.namespace, "settings").revision }).
		WithTimeout(longerThanGrace).WithPolling(time.Second).Should(Equal(1))
}

// TestOrphanIsTold sets a stack to Orphan where that isn't known on its cluster yet, and deletes the stack.
func TestOrphanIsTold(t *testing.T) {
	long.Test(t)
	t.Parallel()
	begin := func(t *testing.T) (*tenant, *server, func() []string) {
		t.Helper()
		t.Parallel()
		tn, s := newProd(t, 0)
		tn.install(tn.small("settings"))
		tn.settle()
		return tn, s, tn.watchDeletions(s)
	}
	t.Run("a paused Cluster", func(t *testing.T) {
		tn, s, deletions := begin(t)
		tn.makeCluster("other", workloadServer(t, 1), labels("env=prod"))
		tn.awaitCluster("other", "it is installed", ready("settings"))
		others := tn.watchDeletions(workloadServer(t, 1))
		tn.pauseCluster("prod", true)
		tn.awaitCluster("prod", "it is paused", condition(addonsv1.PausedCondition, metav1.ConditionTrue, "", ""))
		begin := s.mark(t)
		tn.changeStack("platform", orphans)
		tn.awaitCluster("prod", "the policy is written all the same", assignedWith(addonsv1.DeletionPolicyOrphan))
		tn.isDeleted(s)
		tn.expectLeft("other", workloadServer(t, 1), others)
		tn.awaitCluster("prod", "it waits to be told", assignedWith(addonsv1.DeletionPolicyOrphan))
		tn.Expect(writes(begin.requests(t, tn.clusterUser("prod")))).To(BeEmpty(), "it is paused")
		tn.pauseCluster("prod", false)
		tn.expectLeft("prod", s, deletions)
	})
	t.Run("a paused ClusterAddon, and at once", func(t *testing.T) {
		tn, s, deletions := begin(t)
		pauses := func(annotations map[string]string) {
			change(tn, tn.clusterAddon("prod"), func(ca *addonsv1.ClusterAddon) { ca.Annotations = annotations })
		}
		pauses(map[string]string{clusterv1.PausedAnnotation: ""})
		tn.changeStack("platform", orphans)
		tn.isDeleted(s)
		pauses(nil)
		tn.expectLeft("prod", s, deletions)
	})
	t.Run("a silent cluster that is paused", func(t *testing.T) {
		t.Parallel()
		tn, s := newTenant(t), workloadServer(t, 0)
		p := tn.startProxy("prod", s)
		tn.makeClusterObject("prod", labels("env=prod"))
		tn.startManager()
		tn.install(tn.small("settings"))
		deletions := tn.watchDeletions(s)
		p.refuse()
		tn.awaitCluster("prod", "it doesn't answer", condition(addonsv1.ClusterReachableCondition, metav1.ConditionFalse, "", ""))
		tn.changeStack("platform", orphans)
		tn.awaitCluster("prod", "the policy is written", assignedWith(addonsv1.DeletionPolicyOrphan))
		tn.pauseCluster("prod", true)
		tn.awaitCluster("prod", "it is paused", condition(addonsv1.PausedCondition, metav1.ConditionTrue, "", ""))
		tn.isDeleted(s)
		tn.pauseCluster("prod", false)
		tn.awaitCluster("prod", "it goes on", condition(addonsv1.PausedCondition, metav1.ConditionFalse, "", ""))
		tn.settle()
		tn.awaitCluster("prod", "it isn't told still", assignedWith(addonsv1.DeletionPolicyOrphan))
		p.open(t)
		tn.expectLeft("prod", s, deletions)
	})
	t.Run("a paused stack", func(t *testing.T) {
		tn, s, deletions := begin(t)
		tn.pauseStack("platform")
		begin := s.mark(t)
		tn.changeStack("platform", orphans)
		tn.awaitCluster("prod", "the policy is written", assignedWith(addonsv1.DeletionPolicyOrphan))
		tn.settle()
		tn.Expect(writes(begin.requests(t, tn.clusterUser("prod")))).To(BeEmpty(), "the stack is paused")
		tn.isDeleted(s)
		tn.expectLeft("prod", s, deletions)
	})
	t.Run("a bundle that is gone", func(t *testing.T) {
		t.Parallel()
		tn, s := newProd(t, 0)
		files := map[string]string{}
		for name, text := range configMapChart.complete("settings", "1.0.0") {
			files["settings/"+name] = text
		}
		bundle := &corev1.ConfigMap{ObjectMeta: tn.named("bundle"), BinaryData: map[string][]byte{"bundle.tgz": tarball(files)}}
		tn.create(bundle)
		stack := tn.newStack("platform", labels("env=prod"), tn.addon("settings", "settings"))
		stack.Spec.Source = &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{ConfigMap: &addonsv1.ArtifactReference{Name: "bundle", Key: "bundle.tgz"}}}
		tn.create(stack)
		tn.awaitReady("platform", "it is installed")
		deletions := tn.watchDeletions(s)
		tn.remove(bundle)
		tn.restart() // without what it remembers of the bundle
		tn.changeStack("platform", orphans)
		tn.awaitCluster("prod", "the policy needs no bundle", assignedWith(addonsv1.DeletionPolicyOrphan))
		tn.isDeleted(s)
		tn.expectLeft("prod", s, deletions)
	})
	t.Run("a rejected revision", func(t *testing.T) {
		tn, s, deletions := begin(t)
		tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) {
			spec.Rollout = &addonsv1.Rollout{OnFailure: addonsv1.RolloutRollBack, MinReady: &metav1.Duration{}}
		})
		rolledOut := func(phase addonsv1.RolloutPhase) func(*addonsv1.AddonStack) error {
			return func(s *addonsv1.AddonStack) error {
				if s.Status.Rollout == nil || s.Status.Rollout.Phase != phase || s.Status.ObservedGeneration != s.Generation {
					return fmt.Errorf("%+v", s.Status.Rollout)
				}
				return nil
			}
		}
		tn.awaitStatus("platform", "it was completed", rolledOut(addonsv1.RolloutCompleted))
		tn.changeAddon("platform", "settings", withTemplate("text: {{ .Nowhere.to.be }}"))
		tn.awaitStatus("platform", "the edit is rejected", rolledOut(addonsv1.RolloutRolledBack))
		before := tn.awaitCluster("prod", "it is as before", ready("settings")).Spec.Stacks[0].Revision
		tn.changeStack("platform", orphans)
		tn.awaitCluster("prod", "it is told", assignedWith(addonsv1.DeletionPolicyOrphan), ready("settings"))
		tn.awaitStatus("platform", "a policy is no content", rolledOut(addonsv1.RolloutRolledBack))
		tn.Expect(tn.awaitCluster("prod", "it stays", ready("settings")).Spec.Stacks[0].Revision).To(Equal(before))
		tn.isDeleted(s)
		tn.expectLeft("prod", s, deletions)
	})
}

// TestPoliciesAreNoContent changes how a stack's add-ons go, with and without them going. No revision is made for it.
func TestPoliciesAreNoContent(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	tn, s := newProd(t, 1)
	tn.install(tn.small("settings"), tn.small("other"))
	before := tn.latestRevision("platform")
	recorded := func(policy addonsv1.DeletionPolicy) clusterCheck {
		return func(ca *addonsv1.ClusterAddon) error {
			if !slices.ContainsFunc(ca.Status.Stacks, func(is addonsv1.StackStatus) bool { return is.RecordedDeletionPolicy == policy }) {
				return fmt.Errorf("%+v", ca.Status.Stacks)
			}
			return nil
		}
	}
	for _, policy := range []addonsv1.DeletionPolicy{addonsv1.DeletionPolicyOrphan, addonsv1.DeletionPolicyDelete, addonsv1.DeletionPolicyOrphan} {
		tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) { spec.DeletionPolicy = policy })
		told := policy
		if policy == addonsv1.DeletionPolicyDelete {
			told = ""
		}
		tn.awaitCluster("prod", "it is told", assignedWith(told), recorded(told), ready("other", "settings"))
		tn.awaitReady("platform", "it is seen")
	}
	tn.Expect(tn.latestRevision("platform")).To(Equal(before))
	deletions := tn.watchDeletions(s)
	tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) { spec.Addons = spec.Addons[:1] })
	tn.awaitCluster("prod", "one is left behind", ready("settings"), recorded(addonsv1.DeletionPolicyOrphan))
	tn.settle()
	tn.Expect(deletions()).To(BeEmpty())
	tn.Expect(s.release(t, tn.namespace, "other")).To(Equal(releaseState{1, "deployed"}))
}
