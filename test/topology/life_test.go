// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/cluster-chandler/chandler/test/long"
)

// TestLifeOfACluster takes a Cluster with a worker through all hooks, some of which hold it for a while. It has no part of
// Chandler: the other tests rely on what Cluster API does here.
func TestLifeOfACluster(t *testing.T) {
	long.Test(t)
	t.Parallel()
	const name = "life"
	g := NewWithT(t)
	hooks := world.hooks

	createCluster(t, name, localClass, v34, 1)
	awaitCondition(t, name, clusterv1.ClusterAvailableCondition, true, "")
	awaitState(t, name, state{controlPlane: v34, runs: v34, workers: v34})

	hooks.block(name, "BeforeClusterUpgrade", "the network isn't ready")
	hooks.block(name, "AfterControlPlaneUpgrade", "the cloud controller isn't ready")
	hooks.block(name, "AfterClusterUpgrade", "the autoscaler isn't ready")
	setVersion(t, name, v35)
	awaitBlocked(t, name, "BeforeClusterUpgrade", "the network isn't ready")
	expectState(t, name, state{controlPlane: v34, runs: v34, workers: v34})
	g.Expect(world.SetVersion(t.Context(), key(name), v34)).To(MatchError(ContainSubstring("version cannot be decreased")), "there is no way back")
	hooks.open(name, "BeforeClusterUpgrade")
	awaitBlocked(t, name, "AfterControlPlaneUpgrade", "the cloud controller isn't ready")
	expectState(t, name, state{controlPlane: v35, runs: v35, workers: v34})
	hooks.open(name, "AfterControlPlaneUpgrade")
	awaitBlocked(t, name, "AfterClusterUpgrade", "the autoscaler isn't ready")
	expectState(t, name, state{controlPlane: v35, runs: v35, workers: v35})
	g.Expect(world.SetVersion(t.Context(), key(name), v36)).NotTo(Succeed(), "one upgrade at a time")
	hooks.open(name, "AfterClusterUpgrade")
	awaitCondition(t, name, clusterv1.ClusterTopologyReconciledCondition, true, "")

	hooks.block(name, "BeforeClusterDelete", "volumes are being removed")
	deleteCluster(t, name)
	awaitBlocked(t, name, "BeforeClusterDelete", "volumes are being removed")
	awaitCondition(t, name, clusterv1.ClusterDeletingCondition, true, "")
	expectState(t, name, state{controlPlane: v35, runs: v35, workers: v35})
	g.Expect(world.Provider.Workload(key(name)).Clientset.Discovery().ServerVersion()).NotTo(BeNil(), "what is to be removed can be reached")
	hooks.open(name, "BeforeClusterDelete")
	awaitGone(t, name)

	g.Expect(hooks.calls(name)).To(Equal([]string{
		"BeforeClusterCreate: control plane , workers ",
		"AfterControlPlaneInitialized: control plane v1.34.0, workers v1.34.0",
		"BeforeClusterUpgrade v1.34.0-v1.35.0: control plane v1.34.0, workers v1.34.0",
		"BeforeControlPlaneUpgrade v1.34.0-v1.35.0: control plane v1.34.0, workers v1.34.0",
		"AfterControlPlaneUpgrade v1.35.0: control plane v1.35.0, workers v1.34.0",
		"BeforeWorkersUpgrade v1.34.0-v1.35.0: control plane v1.35.0, workers v1.34.0",
		"AfterWorkersUpgrade v1.35.0: control plane v1.35.0, workers v1.35.0",
		"AfterClusterUpgrade v1.35.0: control plane v1.35.0, workers v1.35.0",
		"BeforeClusterDelete: control plane v1.35.0, workers v1.35.0",
	}))
}
