// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/cluster-chandler/chandler/test/topology"
)

// createCluster makes a Cluster. If the test fails, it says what became of that.
func createCluster(t *testing.T, name, class, version string, workers int32) {
	t.Helper()
	if err := world.Create(t.Context(), topology.NewCluster(key(name), class, version, workers)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("hooks of %s:\n%s\nthe end of the core manager's log:\n%s", name, strings.Join(world.hooks.calls(name), "\n"), world.Core.Tail())
		}
	})
}

func setVersion(t *testing.T, cluster, version string) {
	t.Helper()
	if err := world.SetVersion(t.Context(), key(cluster), version); err != nil {
		t.Fatal(err)
	}
}

// deleteCluster returns when the Cluster, and its workload cluster, are gone.
func deleteCluster(t *testing.T, cluster string) {
	t.Helper()
	if err := world.Delete(t.Context(), topology.NewCluster(key(cluster), "", "", 0)); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, cluster)
}

func awaitGone(t *testing.T, cluster string) {
	t.Helper()
	until(t, cluster+" is to be gone", func() error {
		obj := &clusterv1.Cluster{}
		if err := world.Get(t.Context(), key(cluster), obj); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there (%w): %v", err, obj.Status.Conditions)
		}
		if world.Provider.Workload(key(cluster)) != nil {
			return errors.New("its workload cluster is there")
		}
		return nil
	})
}

// TestLifeOfACluster takes a Cluster with a worker through all hooks, most of which hold it for a while.
func TestLifeOfACluster(t *testing.T) {
	t.Parallel()
	const name = "life"
	g := NewWithT(t)
	hooks := world.hooks

	hooks.block(name, "BeforeClusterCreate", "no network yet")
	createCluster(t, name, localClass, v34, 1)
	awaitBlocked(t, name, "BeforeClusterCreate", "no network yet")
	expectState(t, name, state{})
	hooks.open(name, "BeforeClusterCreate")
	awaitCondition(t, name, clusterv1.ClusterAvailableCondition, true, "")
	awaitState(t, name, state{controlPlane: v34, runs: v34, workers: v34})

	hooks.block(name, "BeforeClusterUpgrade", "the network isn't ready")
	hooks.block(name, "BeforeControlPlaneUpgrade", "the network is still not ready")
	hooks.block(name, "AfterControlPlaneUpgrade", "the cloud controller isn't ready")
	hooks.block(name, "AfterClusterUpgrade", "the autoscaler isn't ready")
	setVersion(t, name, v35)
	awaitBlocked(t, name, "BeforeClusterUpgrade", "the network isn't ready")
	expectState(t, name, state{controlPlane: v34, runs: v34, workers: v34})
	g.Expect(world.SetVersion(t.Context(), key(name), v34)).To(MatchError(ContainSubstring("version cannot be decreased")), "there is no way back")
	hooks.open(name, "BeforeClusterUpgrade")
	awaitBlocked(t, name, "BeforeControlPlaneUpgrade", "the network is still not ready")
	expectState(t, name, state{controlPlane: v34, runs: v34, workers: v34})
	hooks.open(name, "BeforeControlPlaneUpgrade")
	awaitBlocked(t, name, "AfterControlPlaneUpgrade", "the cloud controller isn't ready")
	expectState(t, name, state{controlPlane: v35, runs: v35, workers: v34})
	hooks.open(name, "AfterControlPlaneUpgrade")
	awaitBlocked(t, name, "AfterClusterUpgrade", "the autoscaler isn't ready")
	expectState(t, name, state{controlPlane: v35, runs: v35, workers: v35})
	g.Expect(world.SetVersion(t.Context(), key(name), v36)).NotTo(Succeed(), "one upgrade at a time")
	hooks.open(name, "AfterClusterUpgrade")
	awaitCondition(t, name, clusterv1.ClusterTopologyReconciledCondition, true, "")

	hooks.block(name, "BeforeClusterDelete", "volumes are being removed")
	g.Expect(world.Delete(t.Context(), topology.NewCluster(key(name), "", "", 0))).To(Succeed())
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
