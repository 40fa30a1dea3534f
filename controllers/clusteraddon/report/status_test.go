// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/report"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/result"
	"github.com/cluster-chandler/chandler/internal/member"
)

func addonIn(name string, phase addonsv1.AddonPhase, reason, message string) addonsv1.AddonStatus {
	return addonsv1.AddonStatus{Name: name, Namespace: "default", Stack: "platform", Phase: phase, Reason: reason, Message: message}
}

func TestReadyNamesWhatIsWrong(t *testing.T) {
	up := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	up.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	for name, tc := range map[string]struct {
		unreachable bool
		addons      []addonsv1.AddonStatus
		held, open  []string
		status      metav1.ConditionStatus
		reason      string
		says        string
	}{
		"all is ready": {
			addons: []addonsv1.AddonStatus{addonIn("web", addonsv1.AddonReady, "", "")},
			status: metav1.ConditionTrue, reason: addonsv1.ReadyReason,
		},
		"nothing to do is ready, and says so": {
			status: metav1.ConditionTrue, reason: addonsv1.NoStackMatchesReason, says: "nothing to do",
		},
		"a failure counts more than progress": {
			addons: []addonsv1.AddonStatus{addonIn("a", addonsv1.AddonInstalling, "X", ""), addonIn("b", addonsv1.AddonFailed, "HookFailed", "Job migrate: boom")},
			status: metav1.ConditionFalse, reason: addonsv1.AddonsFailedReason, says: "b: Failed, HookFailed: Job migrate: boom",
		},
		"progress is named": {
			addons: []addonsv1.AddonStatus{addonIn("a", addonsv1.AddonUpgrading, "WaitingForObjects", "Deployment a")},
			status: metav1.ConditionFalse, reason: addonsv1.AddonsProgressingReason, says: "a: Upgrading, WaitingForObjects: Deployment a",
		},
		"a stack of which nothing is known": {
			addons: []addonsv1.AddonStatus{addonIn("web", addonsv1.AddonReady, "", "")}, open: []string{"AddonStack b has no valid revision yet"},
			status: metav1.ConditionFalse, reason: addonsv1.AddonsProgressingReason, says: "AddonStack b",
		},
		"a failure counts more than that": {
			addons: []addonsv1.AddonStatus{addonIn("web", addonsv1.AddonFailed, "HookFailed", "")}, open: []string{"AddonStack b has no valid revision yet"},
			status: metav1.ConditionFalse, reason: addonsv1.AddonsFailedReason, says: "web",
		},
		"a removal is held, and an add-on failed": {
			addons: []addonsv1.AddonStatus{addonIn("web", addonsv1.AddonFailed, "HookFailed", "")}, held: []string{"AddonStack b is gone"},
			status: metav1.ConditionFalse, reason: addonsv1.RemovalHeldReason, says: "AddonStack b",
		},
		"an unreachable cluster": {
			unreachable: true, status: metav1.ConditionFalse, reason: "ConnectionRefused", says: "refused",
		},
	} {
		t.Run(name, func(t *testing.T) {
			ca := &addonsv1.ClusterAddon{}
			reachable := metav1.Condition{Type: addonsv1.ClusterReachableCondition, Status: metav1.ConditionTrue, Reason: "Connected"}
			if report.WriteAddons(ca, tc.addons, tc.held, tc.open); tc.unreachable {
				reachable.Status, reachable.Reason, reachable.Message = metav1.ConditionFalse, "ConnectionRefused", "connection refused"
				conditions.Delete(ca, addonsv1.AddonsReadyCondition)
			}
			report.Gate(ca, memberOf(up))
			conditions.Set(ca, reachable)
			report.Summarize(ca)
			got := conditions.Get(ca, addonsv1.ReadyCondition)
			if got.Status != tc.status || got.Reason != tc.reason || !strings.Contains(got.Message, tc.says) {
				t.Errorf("Ready = %s, %s, %q; want %s, %s, with %q", got.Status, got.Reason, got.Message, tc.status, tc.reason, tc.says)
			}
		})
	}
}

func TestMessagesStayShort(t *testing.T) {
	var statuses []addonsv1.AddonStatus
	for i := range 4096 {
		statuses = append(statuses, addonIn(fmt.Sprint("addon-", i), addonsv1.AddonFailed, "HookFailed", result.Shorten(strings.Repeat("ä", 4000))))
	}
	ca := &addonsv1.ClusterAddon{}
	report.WriteAddons(ca, statuses, nil, nil)
	c := conditions.Get(ca, addonsv1.AddonsReadyCondition)
	if len(c.Message) > 4096 || !strings.HasSuffix(c.Message, "and 4093 more") {
		t.Errorf("message of %d bytes: %.100s", len(c.Message), c.Message)
	}
	if len(statuses[0].Message) > 1024 || strings.Contains(statuses[0].Message, "�") {
		t.Errorf("an add-on's message has %d bytes, or was cut within a character", len(statuses[0].Message))
	}
}

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
			if shut := report.Gate(ca, memberOf(cluster)); shut != (tc.condition != "") {
				t.Errorf("shut: %v", shut)
			}
			if tc.condition == "" {
				return
			}
			report.Summarize(ca)
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
