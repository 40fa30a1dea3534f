// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/test/topology"
)

// olderRelease is of the minor before that of the control planes' code.
const olderRelease = "v1.35.9"

// TestAPIServerChangesItsMinor has the API server of a workload cluster really be of the version that its Cluster asks for.
func TestAPIServerChangesItsMinor(t *testing.T) {
	t.Parallel()
	const name = "minor"
	g := NewWithT(t)
	newer, err := world.Clientset.Discovery().ServerVersion()
	g.Expect(err).NotTo(HaveOccurred())
	class := topology.Class{Namespace: namespace, Name: "real", KubernetesVersions: []string{olderRelease, newer.GitVersion}, RealVersions: true}
	g.Expect(createClass(t.Context(), class)).To(Succeed())
	createCluster(t, name, class.Name, olderRelease, 0)
	awaitCondition(t, name, clusterv1.ClusterControlPlaneInitializedCondition, true, "")
	awaitCondition(t, name, clusterv1.ClusterTopologyReconciledCondition, true, "")

	workload := world.Provider.Workload(key(name))
	g.Expect(workload.Clientset.Discovery().ServerVersion()).To(And(HaveField("GitVersion", olderRelease), HaveField("Minor", "35")))
	kept := &corev1.ConfigMap{Data: map[string]string{"kept": "yes"}}
	kept.Namespace, kept.Name = namespace, "kept"
	g.Expect(workload.Create(t.Context(), kept)).To(Succeed())

	setVersion(t, name, newer.GitVersion)
	awaitState(t, name, state{controlPlane: newer.GitVersion, runs: newer.GitVersion})
	awaitCondition(t, name, clusterv1.ClusterTopologyReconciledCondition, true, "")
	g.Expect(workload.Clientset.Discovery().ServerVersion()).To(HaveField("GitVersion", newer.GitVersion))
	after := &corev1.ConfigMap{}
	g.Expect(workload.Get(t.Context(), client.ObjectKeyFromObject(kept), after)).To(Succeed())
	g.Expect(after).To(And(HaveField("UID", kept.UID), HaveField("Data", kept.Data)), "it has the same data")
	deleteCluster(t, name)
}
