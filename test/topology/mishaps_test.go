// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/topology"
)

// TestMishapsOfUpgrades upgrades a Cluster again and again. Each time something happens while it waits for its network. In
// the end each upgrade is done.
func TestMishapsOfUpgrades(t *testing.T) {
	long.Test(t)
	t.Parallel()
	g := NewWithT(t)
	tn := newTenant(t, "mishaps")
	const name, one, other = "c", "one", "other"
	for _, class := range []string{one, other} {
		g.Expect(createClass(t.Context(), topology.Class{Namespace: tn.namespace, Name: class})).To(Succeed())
	}
	stack := func(class, text string) *addonsv1.AddonStack {
		s := tn.stack(tn.addon("cni", addonsv1.UpgradeBeforeControlPlane, text))
		s.Name, s.Spec.ClusterSelector, s.Spec.ClassNames = class, nil, []string{class}
		return s
	}
	upgrade := 0
	version := func() string { return fmt.Sprintf("v1.36.%d", upgrade) }
	text := func() string { return fmt.Sprintf("text %d", upgrade) }
	notReady := func(class string) func(*addonsv1.ClusterAddon) error {
		return held(addonsv1.UpgradeBeforeControlPlane, addonsv1.UpgradeAddonsNotReadyReason, "add-on cni of AddonStack "+class)
	}
	tn.set(stack(one, text()))
	createCluster(t, tn.at(name), one, version(), 0)
	awaitCondition(t, tn.at(name), clusterv1.ClusterControlPlaneInitializedCondition, true, "")
	tn.ready(name, "cni", text())
	ca := &addonsv1.ClusterAddon{}

	for _, mishap := range []struct {
		is      string
		happens func(t *testing.T, previous string)
	}{
		{"the workload cluster is down", func(t *testing.T, previous string) {
			workload := world.Provider.Workload(key(tn.at(name)))
			g.Expect(workload.StopAPIServer()).To(Succeed())
			tn.await(name, "it can't be seen", held(addonsv1.UpgradeBeforeControlPlane, addonsv1.UpgradeClusterUnreachableReason, "doesn't answer"))
			awaitCondition(t, tn.at(name), clusterv1.ClusterTopologyReconciledCondition, false, "doesn't answer")
			expectState(t, tn.at(name), state{controlPlane: previous, runs: previous})
			g.Expect(workload.StartAPIServer(t.Context())).To(Succeed())
			tn.await(name, "it is seen", notReady(one))
			tn.ready(name, "cni", text())
		}},
		{"its ClusterAddon is deleted", func(t *testing.T, _ string) {
			g.Expect(world.Get(t.Context(), key(tn.at(name)), ca)).To(Succeed())
			g.Expect(world.Delete(t.Context(), ca)).To(Succeed())
			tn.await(name, "it is made again", func(now *addonsv1.ClusterAddon) error {
				if now.UID == ca.UID {
					return fmt.Errorf("it is the same")
				}
				return nil
			})
			tn.ready(name, "cni", text())
		}},
		{"the target is changed by force", func(t *testing.T, previous string) {
			upgrade++
			forceVersion(t, tn.at(name), version())
			tn.set(stack(one, text()))
			tn.await(name, "it waits for the new target", func(ca *addonsv1.ClusterAddon) error {
				if u := ca.Status.Upgrade; u == nil || u.Target != version() {
					return fmt.Errorf("it is %+v", u)
				}
				return notReady(one)(ca)
			})
			expectState(t, tn.at(name), state{controlPlane: previous, runs: previous})
			tn.ready(name, "cni", text())
		}},
		{"it is switched to another class, and back", func(t *testing.T, previous string) {
			tn.set(stack(one, fmt.Sprintf("text %d", upgrade-1)))
			tn.set(stack(other, "other"))
			setClass(t, tn.at(name), other, version())
			tn.await(name, "it waits for the other class", notReady(other))
			expectState(t, tn.at(name), state{controlPlane: previous, runs: previous})
			setClass(t, tn.at(name), one, version())
			tn.ready(name, "cni", fmt.Sprintf("text %d", upgrade-1))
		}},
		{"its stack is deleted", func(t *testing.T, _ string) {
			g.Expect(world.Delete(t.Context(), stack(one, ""))).To(Succeed())
			tn.expectNone(name, "cni")
		}},
	} {
		previous := version()
		tn.await(name, "it is as wanted", isDone)
		awaitCondition(t, tn.at(name), clusterv1.ClusterTopologyReconciledCondition, true, "")
		upgrade++
		tn.set(stack(one, text()))
		setVersion(t, tn.at(name), version())
		tn.await(name, mishap.is+" while it waits", notReady(one))
		mishap.happens(t, previous)
		awaitState(t, tn.at(name), state{controlPlane: version(), runs: version()})
		t.Logf("%s: that upgrade is done", mishap.is)
	}
	tn.await(name, "the last upgrade is done", isDone)
}

// TestCoreManagerRestarts kills the core manager while a hook holds the creation of a Cluster. It runs before the other
// tests, as they need Cluster API's webhooks.
func TestCoreManagerRestarts(t *testing.T) {
	long.Test(t)
	const name = "restarted"
	g := NewWithT(t)
	world.hooks.block(name, "BeforeClusterCreate", "not now")
	createCluster(t, name, localClass, v34, 0)
	awaitBlocked(t, name, "BeforeClusterCreate", "not now")

	world.Core.Kill()
	other := topology.NewCluster(key("other"), localClass, v34, 0)
	g.Expect(world.Create(t.Context(), other)).To(MatchError(ContainSubstring("connection refused")), "its webhooks are asked")
	world.hooks.block(name, "BeforeClusterCreate", "still not")
	g.Expect(world.Core.Start(t.Context())).To(Succeed())
	awaitBlocked(t, name, "BeforeClusterCreate", "still not")
	expectState(t, name, state{})
	deleteCluster(t, name)
	awaitGone(t, name)
	g.Expect(world.hooks.calls(name)).To(Equal([]string{"BeforeClusterCreate: control plane , workers ", "BeforeClusterDelete: control plane , workers "}))
}

// TestHookServerDown has nobody answer for a while. New Clusters come up all the same; control planes aren't upgraded until
// somebody answers.
func TestHookServerDown(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newTenant(t, "down", "--instance-heartbeat=4s")
	const name, other = "c", "other"
	tn.set(tn.stack(tn.addon("cni", addonsv1.UpgradeBeforeControlPlane, "first")))
	createCluster(t, tn.at(name), localClass, v34, 0)
	tn.awaitFirst(name)

	tn.chandler.Kill()
	createCluster(t, tn.at(other), localClass, v34, 1)
	awaitCondition(t, tn.at(other), clusterv1.ClusterAvailableCondition, true, "")
	awaitCondition(t, tn.at(other), clusterv1.ClusterTopologyReconciledCondition, true, "")
	setVersion(t, tn.at(name), v35)
	awaitCondition(t, tn.at(name), clusterv1.ClusterTopologyReconciledCondition, false, "connection refused")
	expectState(t, tn.at(name), state{controlPlane: v34, runs: v34})
	tn.chandler.Launch()
	awaitState(t, tn.at(name), state{controlPlane: v35, runs: v35})
	tn.await(name, "the upgrade is done", isDone)
}

// TestHookServerDownAndIgnored has nobody answer, where upgrades aren't to wait for that.
func TestHookServerDownAndIgnored(t *testing.T) {
	t.Parallel()
	long.Test(t)
	tn := newTenant(t, "ignored", "--instance-heartbeat=4s", "--hook-failure-policy=Ignore")
	const name = "c"
	tn.set(tn.stack(tn.addon("cni", addonsv1.UpgradeBeforeControlPlane, "first")))
	createCluster(t, tn.at(name), localClass, v34, 0)
	tn.awaitFirst(name)

	tn.chandler.Kill()
	setVersion(t, tn.at(name), v35)
	awaitState(t, tn.at(name), state{controlPlane: v35, runs: v35})
	tn.chandler.Launch()
	awaitCondition(t, tn.at(name), clusterv1.ClusterTopologyReconciledCondition, true, "")
	tn.await(name, "the upgrade is done", isDone)
}
