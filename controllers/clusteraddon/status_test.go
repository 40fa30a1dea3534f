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
	paused := up.DeepCopy()
	paused.Spec.Paused = ptr.To(true)
	deleting := up.DeepCopy()
	deleting.DeletionTimestamp = ptr.To(metav1.Now())

	cases := map[string]struct {
		cluster     *clusterv1.Cluster
		unreachable bool
		addons      []addonsv1.AddonStatus
		held, open  []string
		status      metav1.ConditionStatus
		reason      string
		says        string
	}{
		"all is ready": {
			cluster: up, addons: []addonsv1.AddonStatus{addonIn("web", addonsv1.AddonReady, "", "")},
			status: metav1.ConditionTrue, reason: addonsv1.ReadyReason,
		},
		"nothing to do is ready, and says so": {
			cluster: up, status: metav1.ConditionTrue, reason: addonsv1.NoStackMatchesReason, says: "nothing to do",
		},
		"a failure counts more than progress": {
			cluster: up,
			addons:  []addonsv1.AddonStatus{addonIn("a", addonsv1.AddonInstalling, "X", ""), addonIn("b", addonsv1.AddonFailed, "HookFailed", "Job migrate: boom")},
			status:  metav1.ConditionFalse, reason: addonsv1.AddonsFailedReason, says: "b: Failed, HookFailed: Job migrate: boom",
		},
		"progress is named": {
			cluster: up, addons: []addonsv1.AddonStatus{addonIn("a", addonsv1.AddonUpgrading, "WaitingForObjects", "Deployment a")},
			status: metav1.ConditionFalse, reason: addonsv1.AddonsProgressingReason, says: "a: Upgrading, WaitingForObjects: Deployment a",
		},
		"a stack of which nothing is known": {
			cluster: up, addons: []addonsv1.AddonStatus{addonIn("web", addonsv1.AddonReady, "", "")}, open: []string{"AddonStack b has no valid revision yet"},
			status: metav1.ConditionFalse, reason: addonsv1.AddonsProgressingReason, says: "AddonStack b",
		},
		"a failure counts more than that": {
			cluster: up, addons: []addonsv1.AddonStatus{addonIn("web", addonsv1.AddonFailed, "HookFailed", "")}, open: []string{"AddonStack b has no valid revision yet"},
			status: metav1.ConditionFalse, reason: addonsv1.AddonsFailedReason, says: "web",
		},
		"a removal is held, and an add-on failed": {
			cluster: up, addons: []addonsv1.AddonStatus{addonIn("web", addonsv1.AddonFailed, "HookFailed", "")}, held: []string{"AddonStack b is gone"},
			status: metav1.ConditionFalse, reason: addonsv1.RemovalHeldReason, says: "AddonStack b",
		},
		"an unreachable cluster": {
			cluster: up, unreachable: true, status: metav1.ConditionFalse, reason: "ConnectionRefused", says: "refused",
		},
		"a paused Cluster": {
			cluster: paused, status: metav1.ConditionFalse, reason: addonsv1.PausedReason, says: "spec.paused",
		},
		"a Cluster that is being deleted": {
			cluster: deleting, status: metav1.ConditionFalse, reason: addonsv1.DeletingReason, says: "left as they are",
		},
		"a control plane that isn't up": {
			cluster: &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "one"}},
			status:  metav1.ConditionFalse, reason: addonsv1.ControlPlaneNotInitializedReason, says: "controlPlaneInitialized",
		},
		"no Cluster": {
			status: metav1.ConditionFalse, reason: addonsv1.ClusterNotFoundReason, says: "doesn't exist",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ca := &addonsv1.ClusterAddon{Spec: addonsv1.ClusterAddonSpec{ClusterName: "one"}}
			if !gate(ca, memberOf(tc.cluster)) {
				reachable := metav1.Condition{Type: addonsv1.ClusterReachableCondition, Status: metav1.ConditionTrue, Reason: "Connected"}
				if tc.unreachable {
					reachable.Status, reachable.Reason, reachable.Message = metav1.ConditionFalse, "ConnectionRefused", "connection refused"
				}
				conditions.Set(ca, reachable)
				if !tc.unreachable {
					report(ca, tc.addons, tc.held, tc.open)
				}
			}
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

func TestEventsTellWhatChanged(t *testing.T) {
	at := func(phase addonsv1.AddonPhase, reason string, revision int32) addonsv1.AddonStatus {
		s := addonIn("web", phase, reason, "why")
		s.Revision, s.Version = revision, "1.0.0"
		return s
	}
	cases := map[string]struct {
		was, is addonsv1.AddonStatus
		want    string
	}{
		"nothing changed":             {at(addonsv1.AddonReady, "", 1), at(addonsv1.AddonReady, "", 1), ""},
		"an installation starts":      {addonsv1.AddonStatus{}, at(addonsv1.AddonInstalling, "", 1), ""},
		"it continues":                {at(addonsv1.AddonInstalling, "A", 1), at(addonsv1.AddonInstalling, "B", 1), ""},
		"it is ready":                 {at(addonsv1.AddonInstalling, "A", 1), at(addonsv1.AddonReady, "", 1), "AddonReady"},
		"an upgrade starts":           {at(addonsv1.AddonReady, "", 1), at(addonsv1.AddonUpgrading, "", 2), ""},
		"an upgrade follows the last": {at(addonsv1.AddonUpgrading, "", 2), at(addonsv1.AddonUpgrading, "", 3), ""},
		"it fails":                    {at(addonsv1.AddonUpgrading, "", 2), at(addonsv1.AddonFailed, "HookFailed", 2), "HookFailed"},
		"it fails for another reason": {at(addonsv1.AddonFailed, "HookFailed", 2), at(addonsv1.AddonFailed, "ObjectRejected", 2), "ObjectRejected"},
		"it is removed":               {at(addonsv1.AddonReady, "", 2), at(addonsv1.AddonRemoving, "", 2), "AddonRemoving"},
		"it waits":                    {addonsv1.AddonStatus{}, at(addonsv1.AddonPending, "WaitingForDependency", 0), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := &addonsv1.ClusterAddon{Status: addonsv1.ClusterAddonStatus{Addons: []addonsv1.AddonStatus{tc.was}}}
			after := &addonsv1.ClusterAddon{Status: addonsv1.ClusterAddonStatus{Addons: []addonsv1.AddonStatus{tc.is}}}
			got := ""
			if events := eventsOf(before, after); len(events) > 0 {
				got = events[0].reason
			}
			if got != tc.want {
				t.Errorf("event %q, want %q", got, tc.want)
			}
		})
	}
}
