// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/topology"
)

// TestChainedUpgrade goes over two minors at once: the control plane step by step, the workers at the end. How long a step
// takes is the provider's matter.
func TestChainedUpgrade(t *testing.T) {
	long.Test(t)
	t.Parallel()
	const name = "chained"
	g := NewWithT(t)
	createCluster(t, name, localClass, v34, 1)
	awaitCondition(t, name, clusterv1.ClusterAvailableCondition, true, "")

	world.hooks.block(name, "BeforeControlPlaneUpgrade", "the network isn't ready")
	world.Provider.Hold(key(name), topology.ControlPlaneUpgrades)
	world.Provider.Hold(key(name), topology.NewMachines)
	setVersion(t, name, v36)
	awaitBlocked(t, name, "BeforeControlPlaneUpgrade", "the network isn't ready")
	expectState(t, name, state{controlPlane: v34, runs: v34, workers: v34})
	world.hooks.open(name, "BeforeControlPlaneUpgrade")
	awaitState(t, name, state{controlPlane: v35, runs: v34, workers: v34})
	awaitCondition(t, name, clusterv1.ClusterTopologyReconciledCondition, false, "LocalControlPlane upgrading to version v1.35.0 (v1.36.0 pending)")
	g.Expect(world.hooks.count(name, "AfterControlPlaneUpgrade")).To(BeZero())
	world.Provider.Release(key(name), topology.ControlPlaneUpgrades)
	awaitState(t, name, state{controlPlane: v36, runs: v36, workers: v36})
	awaitCondition(t, name, clusterv1.ClusterTopologyReconciledCondition, false, "upgrading to version v1.36.0")
	g.Expect(world.hooks.count(name, "AfterWorkersUpgrade")).To(BeZero())
	world.Provider.Release(key(name), topology.NewMachines)
	awaitCondition(t, name, clusterv1.ClusterTopologyReconciledCondition, true, "")

	g.Expect(world.hooks.calls(name)).To(Equal([]string{
		"BeforeClusterCreate: control plane , workers ",
		"AfterControlPlaneInitialized: control plane v1.34.0, workers v1.34.0",
		"BeforeClusterUpgrade v1.34.0-v1.36.0: control plane v1.34.0, workers v1.34.0",
		"BeforeControlPlaneUpgrade v1.34.0-v1.35.0: control plane v1.34.0, workers v1.34.0",
		"AfterControlPlaneUpgrade v1.35.0: control plane v1.35.0, workers v1.34.0",
		"BeforeControlPlaneUpgrade v1.35.0-v1.36.0: control plane v1.35.0, workers v1.34.0",
		"AfterControlPlaneUpgrade v1.36.0: control plane v1.36.0, workers v1.34.0",
		"BeforeWorkersUpgrade v1.34.0-v1.36.0: control plane v1.36.0, workers v1.34.0",
		"AfterWorkersUpgrade v1.36.0: control plane v1.36.0, workers v1.36.0",
		"AfterClusterUpgrade v1.36.0: control plane v1.36.0, workers v1.36.0",
	}))
}

// TestAPIServerChangesItsMinor has the API server of a workload cluster really be of the version that its Cluster asks for.
func TestAPIServerChangesItsMinor(t *testing.T) {
	long.Test(t)
	t.Parallel()
	const name = "minor"
	g := NewWithT(t)
	older, newer := world.older, world.newer
	class := topology.Class{Namespace: namespace, Name: "real", KubernetesVersions: []string{older, newer}, RealVersions: true}
	g.Expect(createClass(t.Context(), class)).To(Succeed())
	createCluster(t, name, class.Name, older, 0)
	awaitCondition(t, name, clusterv1.ClusterControlPlaneInitializedCondition, true, "")
	awaitCondition(t, name, clusterv1.ClusterTopologyReconciledCondition, true, "")

	workload := world.Provider.Workload(key(name))
	g.Expect(workload.Clientset.Discovery().ServerVersion()).To(And(HaveField("GitVersion", older), HaveField("Minor", fmt.Sprint(version.MustParseSemantic(older).Minor()))))
	kept := &corev1.ConfigMap{Data: map[string]string{"kept": "yes"}}
	kept.Namespace, kept.Name = namespace, "kept"
	g.Expect(workload.Create(t.Context(), kept)).To(Succeed())

	setVersion(t, name, newer)
	awaitState(t, name, state{controlPlane: newer, runs: newer})
	awaitCondition(t, name, clusterv1.ClusterTopologyReconciledCondition, true, "")
	g.Expect(workload.Clientset.Discovery().ServerVersion()).To(HaveField("GitVersion", newer))
	after := &corev1.ConfigMap{}
	g.Expect(workload.Get(t.Context(), client.ObjectKeyFromObject(kept), after)).To(Succeed())
	g.Expect(after).To(And(HaveField("UID", kept.UID), HaveField("Data", kept.Data)), "it has the same data")
}
