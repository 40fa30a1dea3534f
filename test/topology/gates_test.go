// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// TestUpgradeWithAddons upgrades a Cluster and its add-ons, each at its point: Cluster API waits for them, and they for it.
func TestUpgradeWithAddons(t *testing.T) {
	t.Parallel()
	tn := newTenant(t, "gated")
	const name = "c"
	stack := func(network, others string) *addonsv1.AddonStack {
		cni, preflight := tn.addon("cni", addonsv1.UpgradeBeforeControlPlane, network), tn.addon("preflight", "", "first")
		cni.DependsOn, preflight.Lifecycle.Present = []string{"preflight"}, addonsv1.PresentBeforeUpgrade
		return tn.stack(cni, preflight, tn.addon("ccm", addonsv1.UpgradeAfterControlPlane, others), tn.addon("autoscaler", addonsv1.UpgradeAfterWorkers, others))
	}
	createCluster(t, tn.at(name), "real", tn.older, 1)
	awaitCondition(t, tn.at(name), clusterv1.ClusterAvailableCondition, true, "")
	tn.set(stack("first", "first"))
	for _, addon := range []string{"cni", "ccm", "autoscaler"} {
		tn.ready(name, addon, "first")
	}
	tn.await(name, "all is installed", isReady)
	tn.await(name, "no upgrade is in sight", isDone)
	tn.expectNone(name, "preflight")

	since := tn.mark(name)
	setVersion(t, tn.at(name), tn.newer)
	tn.await(name, "a check comes first", held(addonsv1.UpgradeBeforeControlPlane, addonsv1.UpgradeAddonsNotReadyReason, "add-on preflight"))
	tn.set(stack("second", "first"))
	tn.await(name, "the network waits for the check", waiting("cni", "WaitingForDependency"))
	tn.ready(name, "preflight", "first")
	const notReady = "add-on cni of AddonStack platform isn't ready"
	tn.await(name, "the network isn't ready", held(addonsv1.UpgradeBeforeControlPlane, addonsv1.UpgradeAddonsNotReadyReason, notReady))
	awaitCondition(t, tn.at(name), clusterv1.ClusterTopologyReconciledCondition, false, notReady)
	tn.set(stack("second", "second"))
	tn.await(name, "it comes after the control plane", waiting("ccm", "WaitingForControlPlane"))
	tn.await(name, "it comes after the workers", waiting("autoscaler", "WaitingForWorkers"))
	expectState(t, tn.at(name), state{controlPlane: tn.older, runs: tn.older, workers: tn.older})

	tn.forge(name)

	tn.ready(name, "cni", "second")
	awaitState(t, tn.at(name), state{controlPlane: tn.newer, runs: tn.newer, workers: tn.older})
	tn.await(name, "the cloud controller isn't ready", held(addonsv1.UpgradeAfterControlPlane, addonsv1.UpgradeAddonsNotReadyReason, "add-on ccm"))
	awaitCondition(t, tn.at(name), clusterv1.ClusterTopologyReconciledCondition, false, "add-on ccm of AddonStack platform isn't ready")
	expectState(t, tn.at(name), state{controlPlane: tn.newer, runs: tn.newer, workers: tn.older})
	tn.expectText(name, "autoscaler", "first")
	tn.expectNone(name, "preflight")

	tn.ready(name, "ccm", "second")
	awaitState(t, tn.at(name), state{controlPlane: tn.newer, runs: tn.newer, workers: tn.newer})
	tn.await(name, "the autoscaler isn't ready", held(addonsv1.UpgradeAfterWorkers, addonsv1.UpgradeAddonsNotReadyReason, "add-on autoscaler"))
	tn.ready(name, "autoscaler", "second")
	tn.await(name, "the upgrade is done", isDone)
	awaitCondition(t, tn.at(name), clusterv1.ClusterTopologyReconciledCondition, true, "")
	since.expectOrder(tn.newer, "second", "cni", "ccm", "autoscaler")
}

// TestClosedGate has an add-on that isn't for the next version of Kubernetes. Another range, or the annotation, lets the
// upgrade go on.
func TestClosedGate(t *testing.T) {
	t.Parallel()
	tn := newTenant(t, "closed")
	const corrected, forced = "corrected", "forced"
	stack := func(versions string) *addonsv1.AddonStack {
		cni := tn.addon("cni", addonsv1.UpgradeBeforeControlPlane, "first")
		cni.Lifecycle.KubernetesVersions = versions
		return tn.stack(cni)
	}
	for _, name := range []string{corrected, forced} {
		createCluster(t, tn.at(name), "real", tn.older, 0)
	}
	tn.set(stack("<=" + tn.older))
	for _, name := range []string{corrected, forced} {
		awaitCondition(t, tn.at(name), clusterv1.ClusterControlPlaneInitializedCondition, true, "")
		tn.ready(name, "cni", "first")
		tn.await(name, "it is for what runs", isReady)
		awaitCondition(t, tn.at(name), clusterv1.ClusterTopologyReconciledCondition, true, "")
		setVersion(t, tn.at(name), tn.newer)
	}
	for _, name := range []string{corrected, forced} {
		tn.await(name, "it isn't for what is next", held(addonsv1.UpgradeBeforeControlPlane, addonsv1.UpgradeNoCompatibleVersionReason, "add-on cni of AddonStack platform"))
		awaitCondition(t, tn.at(name), clusterv1.ClusterTopologyReconciledCondition, false, "lifecycle.kubernetesVersions <="+tn.older)
		expectState(t, tn.at(name), state{controlPlane: tn.older, runs: tn.older})
	}
	tn.expectQuiet(forced)
	annotate(t, tn.at(forced), addonsv1.SkipGatesAnnotation, tn.older)
	tn.await(forced, "that is for another version", held(addonsv1.UpgradeBeforeControlPlane, addonsv1.UpgradeNoCompatibleVersionReason, "cni"))
	annotate(t, tn.at(forced), addonsv1.SkipGatesAnnotation, tn.newer)
	awaitState(t, tn.at(forced), state{controlPlane: tn.newer, runs: tn.newer})
	expectState(t, tn.at(corrected), state{controlPlane: tn.older, runs: tn.older})
	tn.set(stack("<=" + tn.newer))
	awaitState(t, tn.at(corrected), state{controlPlane: tn.newer, runs: tn.newer})
	for _, name := range []string{corrected, forced} {
		tn.await(name, "the upgrade is done", isDone)
	}
}
