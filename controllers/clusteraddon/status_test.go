// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
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
			if report(ca, tc.addons, tc.held, tc.open); tc.unreachable {
				reachable.Status, reachable.Reason, reachable.Message = metav1.ConditionFalse, "ConnectionRefused", "connection refused"
				conditions.Delete(ca, addonsv1.AddonsReadyCondition)
			}
			gate(ca, memberOf(up))
			conditions.Set(ca, reachable)
			summarize(ca)
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
		statuses = append(statuses, addonIn(fmt.Sprint("addon-", i), addonsv1.AddonFailed, "HookFailed", shorten(strings.Repeat("ä", 4000))))
	}
	ca := &addonsv1.ClusterAddon{}
	report(ca, statuses, nil, nil)
	c := conditions.Get(ca, addonsv1.AddonsReadyCondition)
	if len(c.Message) > 4096 || !strings.HasSuffix(c.Message, "and 4093 more") {
		t.Errorf("message of %d bytes: %.100s", len(c.Message), c.Message)
	}
	if len(statuses[0].Message) > 1024 || strings.Contains(statuses[0].Message, "�") {
		t.Errorf("an add-on's message has %d bytes, or was cut within a character", len(statuses[0].Message))
	}
}
