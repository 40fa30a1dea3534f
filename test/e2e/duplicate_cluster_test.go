// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestTwoClustersWithOneKubeconfig has a Cluster whose kubeconfig is a copy of an older one's. It gets nothing, also after a
// restart, until its kubeconfig is corrected or the older Cluster is gone.
func TestTwoClustersWithOneKubeconfig(t *testing.T) {
	t.Parallel()
	tn, s := newTenant(t), workloadServer(t, 0)
	const found = "--allow-duplicate-clusters=false"
	tn.startManager(found)
	tn.makeStack("platform", labels("env=prod"), tn.small("settings", inNamespace(tn.namespace+"-right")))
	tn.makeStack("copied", labels("env=copied"), tn.small("wrong", inNamespace(tn.namespace+"-wrong")))
	kubeconfig := tn.userOn(s, "older").Kubeconfig
	tn.writeKubeconfig("older", kubeconfig)
	older := tn.makeClusterObject("older", labels("env=prod"))
	tn.awaitCluster("older", "it is alone", ready("settings"))

	tn.writeKubeconfig("younger", kubeconfig)
	tn.makeClusterObject("younger", labels("env=copied"))
	refused := func(reason string) {
		t.Helper()
		for _, secret := range []string{"older-kubeconfig", "younger-kubeconfig"} {
			tn.awaitCluster("younger", reason, condition(addonsv1.ClusterReachableCondition, metav1.ConditionFalse, fleet.ReasonDuplicateCluster, secret))
		}
		tn.Expect(s.release(t, tn.namespace+"-wrong", "wrong")).To(Equal(releaseState{}), "nothing is delivered for the younger one")
		tn.awaitCluster("older", "the older one goes on", ready("settings"), condition(addonsv1.ClusterReachableCondition, metav1.ConditionTrue, fleet.ReasonConnected, ""))
	}
	refused("its kubeconfig is a copy")
	tn.restart(found)
	tn.poke("older", "after the restart")
	tn.awaitReconcile("clusteraddon", 1)
	refused("the same after a restart")

	other := workloadServer(t, 1)
	tn.writeKubeconfig("younger", tn.userOn(other, "younger").Kubeconfig)
	tn.awaitCluster("younger", "its kubeconfig is corrected", ready("wrong"))
	tn.Expect(s.release(t, tn.namespace+"-wrong", "wrong")).To(Equal(releaseState{}), "they are where they belong")

	// A third one, which is made in the place of the older one.
	tn.writeKubeconfig("again", tn.userOn(s, "again").Kubeconfig)
	tn.makeClusterObject("again", labels("env=prod"))
	tn.awaitCluster("again", "the older one is there", condition(addonsv1.ClusterReachableCondition, metav1.ConditionFalse, fleet.ReasonDuplicateCluster, "older-kubeconfig"))
	must.Succeed(t, world.hub.Delete(t.Context(), older))
	tn.awaitCluster("again", "the older one is gone", condition(addonsv1.ClusterReachableCondition, metav1.ConditionTrue, fleet.ReasonConnected, ""))
}
