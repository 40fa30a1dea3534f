// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
)

// TestSelection changes, step by step, which cluster is to have what.
func TestSelection(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newTenant(t)
	prod, dev := workloadServer(t, 0), workloadServer(t, 1)
	tn.makeCluster("prod", prod, labels("env=prod"))
	tn.makeCluster("dev", dev, labels("env=dev"), func(c *clusterv1.Cluster) {
		c.Spec.Topology = clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Name: "small"}, Version: "v1.36.3"}
	})
	tn.startManager()

	tn.awaitCluster("prod", "a cluster that nothing selects is ready, and says so",
		condition(addonsv1.AddonsReadyCondition, metav1.ConditionTrue, addonsv1.NoStackMatchesReason, "No AddonStack selects this Cluster"),
		condition(addonsv1.ReadyCondition, metav1.ConditionTrue, addonsv1.NoStackMatchesReason, ""))

	tn.run("by labels", func(t *testing.T, tn *tenant) {
		stack := tn.makeStack("by-label", labels("env=prod"), tn.small("by-label"), tn.small("second"))
		await(t, world.hub, stack, patience, "the stack is to become Ready", func(s *addonsv1.AddonStack) error {
			err := checkCondition(s, addonsv1.ReadyCondition, metav1.ConditionTrue, "", "")
			for _, addon := range []string{"by-label", "second"} {
				if state := prod.release(t, tn.namespace, addon); err == nil && state.status != "deployed" {
					t.Fatalf("a new stack must not be Ready before anything is done, or `kubectl wait` returns too early: release %s is %+v", addon, state)
				}
			}
			if err == nil && s.Status.Clusters.Ready != 1 {
				t.Errorf("condition Ready is True while status.clusters is %+v: they are to be written at once", *s.Status.Clusters)
			}
			return err
		})
		tn.awaitReady("by-label", "the stack selects a cluster by its label")
		tn.awaitCluster("prod", "it gets the add-ons", ready("by-label", "second"))
		tn.awaitCluster("dev", "another cluster doesn't", condition(addonsv1.ReadyCondition, metav1.ConditionTrue, addonsv1.NoStackMatchesReason, ""))
	})
	tn.run("by class", func(_ *testing.T, tn *tenant) {
		s := tn.newStack("by-class", nil, tn.small("by-class"))
		s.Spec.ClusterSelector, s.Spec.ClassNames = nil, []string{"large", "small"}
		tn.create(s)
		s = tn.awaitReady("by-class", "the stack selects a cluster by its ClusterClass")
		tn.Expect(s.Status.Clusters.Total).To(BeEquivalentTo(1), "only one cluster has the class")
		tn.awaitCluster("dev", "it gets the add-on", ready("by-class"))
	})
	tn.run("nothing", func(_ *testing.T, tn *tenant) {
		tn.makeStack("nobody", labels("env=nowhere"), tn.small("nobody"))
		tn.awaitStack("nobody", "a stack that selects nothing is to say so", addonsv1.ClustersReadyCondition, metav1.ConditionTrue, addonsv1.NoClusterMatchesReason, "env=nowhere. There are env=dev, env=prod")
	})
	tn.run("two stacks want one release", func(t *testing.T, tn *tenant) {
		tn.makeStack("rival", labels("env=prod"), tn.small("by-label", withValues(map[string]any{"text": "rival"})))
		tn.awaitStack("rival", "the one that came second is told who has the release", addonsv1.ReadyCondition, metav1.ConditionFalse, addonsv1.ClustersFailedReason, "AddonStack by-label")
		tn.remove(tn.newStack("rival", nil))
		tn.awaitCluster("prod", "when it goes, the first one's add-on stays", ready("by-label", "second"))
		NewWithT(t).Expect(prod.release(t, tn.namespace, "by-label")).To(Equal(releaseState{1, "deployed"}), "and was never touched")
	})
	tn.run("an add-on is taken off the list", func(t *testing.T, tn *tenant) {
		tn.changeStack("by-label", func(spec *addonsv1.AddonStackSpec) { spec.Addons = spec.Addons[:1] })
		tn.expectRemoved(t, prod, "second")
		tn.awaitReady("by-label", "what is left is ready")
		tn.awaitCluster("prod", "the status forgets it", ready("by-label"))
	})
	tn.run("a cluster stops matching", func(t *testing.T, tn *tenant) {
		tn.relabel("prod", "env=test")
		tn.expectRemoved(t, prod, "by-label")
		tn.awaitCluster("prod", "it has nothing any more", condition(addonsv1.ReadyCondition, metav1.ConditionTrue, addonsv1.NoStackMatchesReason, ""))
		tn.awaitStack("by-label", "a stack that had clusters isn't Ready", addonsv1.ReadyCondition, metav1.ConditionFalse, addonsv1.NoClusterMatchesReason, "")
		tn.relabel("prod", "env=prod")
		tn.awaitCluster("prod", "and when it matches again, it gets the add-on again", ready("by-label"))
	})
	tn.run("a cluster stops matching a stack that orphans", func(t *testing.T, tn *tenant) {
		tn.changeStack("by-label", func(spec *addonsv1.AddonStackSpec) { spec.DeletionPolicy = addonsv1.DeletionPolicyOrphan })
		tn.awaitReady("by-label", "a change of the policy is no new revision")
		tn.settle()
		before := prod.release(t, tn.namespace, "by-label")
		tn.relabel("prod", "env=test")
		tn.awaitCluster("prod", "Chandler lets go of the add-on", condition(addonsv1.ReadyCondition, metav1.ConditionTrue, addonsv1.NoStackMatchesReason, ""))
		tn.settle()
		tn.Expect(prod.release(t, tn.namespace, "by-label")).To(Equal(before), "it stays as a Helm release, deployed")
		tn.Expect(prod.Get(t.Context(), tn.key("by-label"), tn.configMapOf("by-label"))).To(Succeed(), "with its objects")
	})
	tn.run("a stack is deleted", func(t *testing.T, tn *tenant) {
		tn.remove(tn.newStack("by-class", nil))
		tn.expectRemoved(t, dev, "by-class")
		tn.awaitCluster("dev", "it has nothing any more", condition(addonsv1.ReadyCondition, metav1.ConditionTrue, addonsv1.NoStackMatchesReason, ""))
	})
}

// relabel sets the labels of a Cluster.
func (tn *tenant) relabel(cluster string, pairs ...string) {
	tn.t.Helper()
	change(tn, newCluster(tn.namespace, cluster, nil), func(c *clusterv1.Cluster) { c.Labels = labels(pairs...) })
}

// expectRemoved waits until nothing is left of an add-on with configMapChart.
func (tn *tenant) expectRemoved(t *testing.T, s *server, addon string) {
	t.Helper()
	poll(t, patience, "nothing is to be left of add-on "+addon, func() error {
		if r := s.release(t, tn.namespace, addon); r.revision != 0 {
			return fmt.Errorf("the release is %s at revision %d", r.status, r.revision)
		}
		if err := s.Get(t.Context(), tn.key(addon), tn.configMapOf(addon)); client.IgnoreNotFound(err) != nil {
			return err
		} else if err == nil {
			return errors.New("its ConfigMap is still there")
		}
		return nil
	})
}

// configMapOf names the ConfigMap of an add-on with configMapChart.
func (tn *tenant) configMapOf(addon string) *corev1.ConfigMap {
	c := &corev1.ConfigMap{ObjectMeta: tn.named(addon)}
	return c
}

// exists has nothing against an object that is there.
func exists(*corev1.ConfigMap) error { return nil }
