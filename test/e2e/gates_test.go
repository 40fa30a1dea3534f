// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestGates has a cluster for each reason to leave a cluster alone: the
// condition tells it, nothing is written, and it continues when the reason is gone.
func TestGates(t *testing.T) {
	t.Parallel()
	for name, gate := range map[string]struct {
		shut, open func(*tenant, *clusterv1.Cluster)
		condition  string
		status     metav1.ConditionStatus
		reason     string
		says       string
	}{
		"control plane not initialized": {
			shut:      func(tn *tenant, c *clusterv1.Cluster) { tn.setInitialized(refreshed(tn, c), false) },
			open:      func(tn *tenant, c *clusterv1.Cluster) { tn.setInitialized(refreshed(tn, c), true) },
			condition: addonsv1.ControlPlaneInitializedCondition, status: metav1.ConditionFalse,
			reason: addonsv1.ControlPlaneNotInitializedReason, says: "status.initialization.controlPlaneInitialized",
		},
		"Cluster paused": {
			shut: func(tn *tenant, c *clusterv1.Cluster) {
				change(tn, c, func(c *clusterv1.Cluster) { c.Spec.Paused = ptr.To(true) })
			},
			open: func(tn *tenant, c *clusterv1.Cluster) {
				change(tn, c, func(c *clusterv1.Cluster) { c.Spec.Paused = ptr.To(false) })
			},
			condition: addonsv1.PausedCondition, status: metav1.ConditionTrue, reason: addonsv1.PausedReason, says: "spec.paused of Cluster",
		},
		"ClusterAddon paused": {
			shut: func(tn *tenant, c *clusterv1.Cluster) {
				change(tn, tn.clusterAddon(c.Name), func(ca *addonsv1.ClusterAddon) {
					ca.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
				})
			},
			open: func(tn *tenant, c *clusterv1.Cluster) {
				change(tn, tn.clusterAddon(c.Name), func(ca *addonsv1.ClusterAddon) { delete(ca.Annotations, clusterv1.PausedAnnotation) })
			},
			condition: addonsv1.PausedCondition, status: metav1.ConditionTrue, reason: addonsv1.PausedReason, says: clusterv1.PausedAnnotation,
		},
		"Cluster being deleted": {
			shut:      func(tn *tenant, c *clusterv1.Cluster) { tn.remove(c) },
			condition: addonsv1.DeletingCondition, status: metav1.ConditionTrue, reason: addonsv1.DeletingReason, says: "being deleted",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tn := newTenant(t)
			s := workloadServer(t, 0)
			cluster := tn.makeCluster("prod", s, labels("env=prod"), func(c *clusterv1.Cluster) { c.Finalizers = []string{"chandler.test/stay"} })
			tn.startManager()
			tn.install(tn.small("settings", withValues(map[string]any{"text": "before"})))

			gate.shut(tn, cluster)
			says := condition(gate.condition, gate.status, gate.reason, gate.says)
			tn.awaitCluster("prod", "the condition is to tell why nothing is done", says,
				condition(addonsv1.ReadyCondition, metav1.ConditionFalse, gate.reason, gate.says))
			start := s.mark(t)
			tn.changeAddon("platform", "settings", withValues(map[string]any{"text": "after"}))
			tn.awaitStack("platform", "the stack is told, and counts the cluster as waiting", addonsv1.ClustersReadyCondition, metav1.ConditionFalse, addonsv1.ClustersProgressingReason, "1 can't be worked on now")
			tn.restart()
			tn.settle()
			tn.awaitCluster("prod", "a restart changes nothing", says)
			tn.Expect(writes(start.requests(t, tn.clusterUser("prod")))).To(BeEmpty(), "nothing is written to the cluster meanwhile")

			if gate.open == nil {
				return
			}
			gate.open(tn, cluster)
			tn.awaitReady("platform", "it continues when the gate opens")
			tn.awaitCluster("prod", "what was changed meanwhile is rolled out", installedAs("settings", 2, "1.0.0"))
		})
	}
}

// refreshed reads the Cluster again.
func refreshed(tn *tenant, c *clusterv1.Cluster) *clusterv1.Cluster {
	tn.t.Helper()
	must.Succeed(tn.t, world.hub.Get(tn.t.Context(), tn.key(c.Name), c))
	return c
}
