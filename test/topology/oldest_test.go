// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// TestOldestClusterAPI upgrades a Cluster with the oldest core manager that Chandler works with. That doesn't know all
// hooks, sends Clusters of an older version of its API, and doesn't say which versions of Kubernetes run. The test needs
// CHANDLER_CORE_MODULE=hack/tools/capi-oldest.
func TestOldestClusterAPI(t *testing.T) {
	if !world.oldest {
		t.Skip("CHANDLER_CORE_MODULE isn't set")
	}
	tn := newTenant(t, "oldest")
	const name = "c"
	stack := func(text string) *addonsv1.AddonStack {
		return tn.stack(tn.addon("cni", addonsv1.UpgradeBeforeControlPlane, text), tn.addon("ccm", addonsv1.UpgradeAfterControlPlane, text))
	}
	createCluster(t, tn.at(name), "real", world.older, 0)
	awaitCondition(t, tn.at(name), clusterv1.ClusterControlPlaneInitializedCondition, true, "")
	tn.set(stack("first"))
	tn.ready(name, "cni", "first")
	tn.ready(name, "ccm", "first")
	tn.await(name, "all is installed", isReady)
	awaitCondition(t, tn.at(name), clusterv1.ClusterTopologyReconciledCondition, true, "")

	tn.set(tn.stack(append(stack("first").Spec.Addons[1:], tn.addon("cni", addonsv1.UpgradeBeforeControlPlane, "second"))...))
	setVersion(t, tn.at(name), world.newer)
	awaitCondition(t, tn.at(name), clusterv1.ClusterTopologyReconciledCondition, false, "add-on cni of AddonStack platform isn't ready")
	tn.set(stack("second"))
	tn.await(name, "it comes after the control plane", waiting("ccm", "WaitingForControlPlane"))
	expectState(t, tn.at(name), state{controlPlane: world.older, runs: world.older})
	tn.ready(name, "cni", "second")
	awaitState(t, tn.at(name), state{controlPlane: world.newer, runs: world.newer})
	tn.ready(name, "ccm", "second")
	tn.await(name, "the upgrade is done", isDone)
	awaitCondition(t, tn.at(name), clusterv1.ClusterTopologyReconciledCondition, true, "")
	deleteCluster(t, tn.at(name))
	awaitGone(t, tn.at(name))
}
