// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/topology"
)

// TestUpgradeUnasked has no ExtensionConfig, so Cluster API upgrades the control plane whatever the add-ons are like. The
// ClusterAddon says so.
func TestUpgradeUnasked(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newUnaskedTenant(t, "unasked")
	const name = "c"
	stack := func(text string) *addonsv1.AddonStack {
		return tn.stack(tn.addon("cni", addonsv1.UpgradeBeforeControlPlane, text))
	}
	createCluster(t, tn.at(name), localClass, v34, 1)
	tn.set(stack("first"))
	awaitCondition(t, tn.at(name), clusterv1.ClusterAvailableCondition, true, "")
	tn.ready(name, "cni", "first")
	tn.await(name, "it is installed", isReady)

	tn.set(stack("second"))
	tn.await(name, "it isn't ready", waiting("cni", "WaitingForObjects"))
	world.Provider.Hold(key(tn.at(name)), topology.ControlPlaneUpgrades)
	setVersion(t, tn.at(name), v35)
	tn.await(name, "it is held, as far as is known", held(addonsv1.UpgradeBeforeControlPlane, addonsv1.UpgradeAddonsNotReadyReason, "cni"))
	world.Provider.Release(key(tn.at(name)), topology.ControlPlaneUpgrades)
	tn.await(name, "nobody asked", func(ca *addonsv1.ClusterAddon) error {
		c := conditions.Get(ca, addonsv1.UpgradeAllowedCondition)
		if c == nil || c.Status != metav1.ConditionUnknown || c.Reason != addonsv1.UpgradeNotAskedReason {
			return fmt.Errorf("allowed is %+v, the upgrade %+v", c, ca.Status.Upgrade)
		}
		return nil
	})
	awaitState(t, tn.at(name), state{controlPlane: v35, runs: v35, workers: v35})
	tn.ready(name, "cni", "second")
	tn.await(name, "the upgrade is done", isDone)
}
