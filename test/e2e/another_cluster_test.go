// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// TestKubeconfigOfAnotherCluster has the kubeconfig lead to another cluster for a while, in which an add-on is
// dropped. Then the cluster is replaced for good.
func TestKubeconfigOfAnotherCluster(t *testing.T) {
	t.Parallel()
	tn, g := newTenant(t), NewWithT(t)
	right, wrong := workloadServer(t, 1), workloadServer(t, 2)
	tn.makeCluster("prod", right, nil)
	tn.startManager()
	tn.makeStack("platform", nil, tn.small("one"), tn.small("two"))
	tn.awaitCluster("prod", "it is installed", ready("one", "two"))
	another := condition(addonsv1.ClusterReachableCondition, metav1.ConditionFalse, addonsv1.AnotherClusterReason, "")

	tn.writeKubeconfig("prod", tn.userOn(wrong, "prod").Kubeconfig)
	tn.awaitCluster("prod", "it is told", another)
	tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) { spec.Addons = spec.Addons[:1] })
	tn.settle()
	g.Expect(tn.configMapsOn(wrong)).NotTo(Or(HaveKey("one"), HaveKey("two")))
	tn.restart()
	tn.awaitCluster("prod", "it is told again", another)
	g.Expect(tn.configMapsOn(right)).To(And(HaveKey("one"), HaveKey("two")))

	tn.writeKubeconfig("prod", tn.userOn(right, "prod").Kubeconfig)
	tn.expectRemoved(t, right, "two")
	tn.awaitCluster("prod", "it is as before", ready("one"))
	g.Expect(right.release(t, tn.namespace, "one")).To(Equal(releaseState{1, "deployed"}))

	tn.writeKubeconfig("prod", tn.userOn(wrong, "prod").Kubeconfig)
	tn.awaitCluster("prod", "it is another again", another)
	tn.remove(tn.clusterAddon("prod"))
	tn.awaitCluster("prod", "somebody says that it was replaced", ready("one"))
	g.Expect(tn.configMapsOn(wrong)).To(HaveKey("one"))
	g.Expect(tn.configMapsOn(right)).To(HaveKey("one"), "it is left as it is")
}
