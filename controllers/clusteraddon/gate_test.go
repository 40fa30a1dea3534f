// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/member"
)

// Each reason to leave a cluster alone shuts the gate by itself, and its condition tells.
func TestGate(t *testing.T) {
	now := metav1.Now()
	for name, tc := range map[string]struct {
		change            func(*addonsv1.ClusterAddon, *clusterv1.Cluster)
		missing           bool
		condition, reason string
	}{
		"open":                  {},
		"Cluster being deleted": {change: func(_ *addonsv1.ClusterAddon, c *clusterv1.Cluster) { c.DeletionTimestamp = &now }, condition: addonsv1.DeletingCondition, reason: addonsv1.DeletingReason},
		"being deleted":         {change: func(ca *addonsv1.ClusterAddon, _ *clusterv1.Cluster) { ca.DeletionTimestamp = &now }, condition: addonsv1.DeletingCondition, reason: addonsv1.DeletingReason},
		"Cluster paused":        {change: func(_ *addonsv1.ClusterAddon, c *clusterv1.Cluster) { c.Spec.Paused = ptr.To(true) }, condition: addonsv1.PausedCondition, reason: addonsv1.PausedReason},
		"paused": {change: func(ca *addonsv1.ClusterAddon, _ *clusterv1.Cluster) {
			ca.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
		}, condition: addonsv1.PausedCondition, reason: addonsv1.PausedReason},
		"no Cluster": {missing: true, condition: addonsv1.ControlPlaneInitializedCondition, reason: addonsv1.ClusterNotFoundReason},
		"no control plane": {change: func(_ *addonsv1.ClusterAddon, c *clusterv1.Cluster) {
			c.Status.Initialization.ControlPlaneInitialized = nil
		}, condition: addonsv1.ControlPlaneInitializedCondition, reason: addonsv1.ControlPlaneNotInitializedReason},
	} {
		t.Run(name, func(t *testing.T) {
			ca, cluster := &addonsv1.ClusterAddon{}, &clusterv1.Cluster{}
			cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
			if tc.change != nil {
				tc.change(ca, cluster)
			}
			if tc.missing {
				cluster = nil
			}
			if shut := gate(ca, memberOf(cluster)); shut != (tc.condition != "") {
				t.Errorf("shut: %v", shut)
			}
			if tc.condition == "" {
				return
			}
			summarize(ca)
			if told, ready := conditions.GetReason(ca, tc.condition), conditions.Get(ca, addonsv1.ReadyCondition); told != tc.reason || ready.Reason != tc.reason ||
				ready.Status != metav1.ConditionFalse || ready.Message == "" {
				t.Errorf("%s: %s, and %+v", tc.condition, told, ready)
			}
		})
	}
}

// memberOf returns the member that a Cluster is, nil if it is missing.
func memberOf(cluster *clusterv1.Cluster) *member.Member {
	if cluster == nil {
		return nil
	}
	return member.OfCluster(cluster)
}
