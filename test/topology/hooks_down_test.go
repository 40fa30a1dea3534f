// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
)

// TestHookServerDown has nobody answer for a while. New Clusters come up all the same; control planes aren't upgraded until
// somebody answers.
func TestHookServerDown(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newTenant(t, "down", "--instance-heartbeat=4s")
	const name, other = "c", "other"
	tn.set(tn.stack(tn.addon("cni", addonsv1.UpgradeBeforeControlPlane, "first")))
	createCluster(t, tn.at(name), localClass, v34, 0)
	awaitCondition(t, tn.at(name), clusterv1.ClusterControlPlaneInitializedCondition, true, "")
	tn.ready(name, "cni", "first")
	tn.await(name, "it is installed", isReady)
	awaitCondition(t, tn.at(name), clusterv1.ClusterTopologyReconciledCondition, true, "")

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
	awaitCondition(t, tn.at(name), clusterv1.ClusterControlPlaneInitializedCondition, true, "")
	tn.ready(name, "cni", "first")
	tn.await(name, "it is installed", isReady)
	awaitCondition(t, tn.at(name), clusterv1.ClusterTopologyReconciledCondition, true, "")

	tn.chandler.Kill()
	setVersion(t, tn.at(name), v35)
	awaitState(t, tn.at(name), state{controlPlane: v35, runs: v35})
	tn.chandler.Launch()
	awaitCondition(t, tn.at(name), clusterv1.ClusterTopologyReconciledCondition, true, "")
	tn.await(name, "the upgrade is done", isDone)
}
