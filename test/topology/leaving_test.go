// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/topology"
)

// TestDeletionEnds deletes Clusters whose add-ons can't be removed, or mustn't be.
func TestDeletionEnds(t *testing.T) {
	long.Test(t)
	t.Parallel()
	g := NewWithT(t)
	tn := newTenant(t, "leaving")
	stack := func(hold int32) *addonsv1.AddonStack {
		ingress := tn.addon("ingress", addonsv1.UpgradeIndependent, "first")
		ingress.Lifecycle.OnClusterDelete = addonsv1.OnClusterDeleteRemove
		site := ingress
		site.Name, site.DependsOn, site.Lifecycle = "site", []string{"ingress"}, ingress.Lifecycle.DeepCopy()
		s := tn.stack(ingress, site)
		s.Spec.Lifecycle = &addonsv1.StackLifecycle{HoldSeconds: &hold, AfterHold: addonsv1.AfterHoldProceed}
		return s
	}
	create := func(name string) {
		createCluster(t, tn.at(name), localClass, v34, 0)
		awaitCondition(t, tn.at(name), clusterv1.ClusterControlPlaneInitializedCondition, true, "")
		tn.ready(name, "ingress", "first")
		tn.ready(name, "site", "first")
		tn.await(name, "all is installed", isReady)
	}
	const finalizer = "example.org/for-ever"
	waits := func(ca *addonsv1.ClusterAddon) error {
		if d := ca.Status.Deletion; d == nil || d.State != addonsv1.GateWaiting {
			return fmt.Errorf("the deletion is %+v", d)
		}
		return nil
	}
	tn.set(stack(15))

	create("stuck")
	tn.finalize("stuck", "site", tn.namespace, finalizer)
	deleteCluster(t, tn.at("stuck"))
	tn.await("stuck", "it waits", waits)
	awaitGone(t, tn.at("stuck"))
	tn.warned(addonsv1.UpgradeHoldExpiredReason)

	create("unreachable")
	g.Expect(world.Provider.Workload(key(tn.at("unreachable"))).StopAPIServer()).To(Succeed())
	deleteCluster(t, tn.at("unreachable"))
	tn.await("unreachable", "it waits", waits)
	awaitGone(t, tn.at("unreachable"))

	tn.set(stack(3600))
	create("paused")
	setPaused := func(yes bool) {
		c := &clusterv1.Cluster{}
		g.Expect(world.Get(t.Context(), key(tn.at("paused")), c)).To(Succeed())
		before := c.DeepCopy()
		c.Spec.Paused = ptr.To(yes)
		g.Expect(world.Patch(t.Context(), c, client.MergeFrom(before))).To(Succeed())
	}
	setPaused(true)
	tn.await("paused", "it is paused", isPaused)
	since := tn.mark("paused")
	deleteCluster(t, tn.at("paused"))
	annotate(t, tn.at("paused"), "example.org/touched", "yes")
	tn.await("paused", "it is still paused", isPaused)
	g.Expect(since.workloadWrites("configmaps", "site")).To(BeEmpty(), "nothing is removed of a paused Cluster")
	tn.finalize("paused", "site", tn.namespace, finalizer)
	setPaused(false)
	tn.await("paused", "it waits", waits)

	// In the middle of that it moves to another management cluster: so what is left stays.
	world.hooks.block("paused", "BeforeClusterDelete", "not yet")
	annotate(t, tn.at("paused"), "clusterctl.cluster.x-k8s.io/delete-for-move", "")
	tn.await("paused", "it continues elsewhere", func(ca *addonsv1.ClusterAddon) error {
		if ca.Status.Deletion != nil {
			return fmt.Errorf("the deletion is %+v", ca.Status.Deletion)
		}
		return nil
	})
	survivor := world.Provider.Workload(key(tn.at("paused")))
	tn.finalize("paused", "site", tn.namespace)
	awaitBlocked(t, tn.at("paused"), "BeforeClusterDelete", "not yet")
	ingress := &corev1.ConfigMap{}
	g.Expect(survivor.Get(t.Context(), client.ObjectKey{Namespace: tn.namespace, Name: "ingress"}, ingress)).To(Succeed())
	g.Expect(ingress.DeletionTimestamp).To(BeNil())
	world.hooks.open("paused", "BeforeClusterDelete")
	awaitGone(t, tn.at("paused"))
}

// TestUpgradeUnasked has no ExtensionConfig, so Cluster API upgrades the control plane whatever the add-ons are like. The
// ClusterAddon says so.
func TestUpgradeUnasked(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newUnaskedTenant(t, "unasked")
	const name = "c"
	stack := func(text string) *addonsv1.AddonStack {
		return tn.stack(tn.addon("cni", addonsv1.UpgradeBeforeControlPlane, text))
	}
	createCluster(t, tn.at(name), localClass, v34, 1)
	tn.set(stack("first"))
	awaitCondition(t, tn.at(name), clusterv1.ClusterAvailableCondition, true, "")
	tn.ready(name, "cni", "first")
	tn.await(name, "it is installed", isReady)

	tn.set(stack("second"))
	tn.await(name, "it isn't ready", waiting("cni", "WaitingForObjects"))
	world.Provider.Hold(key(tn.at(name)), topology.ControlPlaneUpgrades)
	setVersion(t, tn.at(name), v35)
	tn.await(name, "it is held, as far as is known", held(addonsv1.UpgradeBeforeControlPlane, addonsv1.UpgradeAddonsNotReadyReason, "cni"))
	world.Provider.Release(key(tn.at(name)), topology.ControlPlaneUpgrades)
	tn.await(name, "nobody asked", func(ca *addonsv1.ClusterAddon) error {
		c := conditions.Get(ca, addonsv1.UpgradeAllowedCondition)
		if c == nil || c.Status != metav1.ConditionUnknown || c.Reason != addonsv1.UpgradeNotAskedReason {
			return fmt.Errorf("allowed is %+v, the upgrade %+v", c, ca.Status.Upgrade)
		}
		return nil
	})
	awaitState(t, tn.at(name), state{controlPlane: v35, runs: v35, workers: v35})
	tn.ready(name, "cni", "second")
	tn.await(name, "the upgrade is done", isDone)
}
