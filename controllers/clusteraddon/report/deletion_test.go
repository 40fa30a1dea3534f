// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/gather"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/report"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/result"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/workload"
	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/upgrade"
)

func TestRemovesBeforeDeletion(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*clusterv1.Cluster, *addonsv1.ClusterAddon)
		want   bool
	}{
		"so":               {change: func(*clusterv1.Cluster, *addonsv1.ClusterAddon) {}, want: true},
		"not deleted":      {change: func(c *clusterv1.Cluster, _ *addonsv1.ClusterAddon) { c.DeletionTimestamp = nil }},
		"paused":           {change: func(c *clusterv1.Cluster, _ *addonsv1.ClusterAddon) { c.Spec.Paused = ptr.To(true) }},
		"without topology": {change: func(c *clusterv1.Cluster, _ *addonsv1.ClusterAddon) { c.Spec.Topology = clusterv1.Topology{} }},
		"not initialized":  {change: func(c *clusterv1.Cluster, _ *addonsv1.ClusterAddon) { c.Status = clusterv1.ClusterStatus{} }},
		"it moves": {change: func(c *clusterv1.Cluster, _ *addonsv1.ClusterAddon) {
			c.Annotations = map[string]string{"clusterctl.cluster.x-k8s.io/delete-for-move": ""}
		}},
		"it continues already": {change: func(c *clusterv1.Cluster, _ *addonsv1.ClusterAddon) {
			c.Annotations = map[string]string{"runtime.cluster.x-k8s.io/ok-to-delete": ""}
		}},
		"paused ClusterAddon": {change: func(_ *clusterv1.Cluster, ca *addonsv1.ClusterAddon) {
			ca.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
		}},
		"deleted ClusterAddon": {change: func(_ *clusterv1.Cluster, ca *addonsv1.ClusterAddon) { ca.DeletionTimestamp = ptr.To(metav1.Now()) }},
		"nothing goes":         {change: func(_ *clusterv1.Cluster, ca *addonsv1.ClusterAddon) { ca.Status.GatesDeletion = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, ca := &clusterv1.Cluster{}, &addonsv1.ClusterAddon{}
			cluster.DeletionTimestamp, cluster.Spec.Topology.ClassRef.Name = ptr.To(metav1.Now()), "local"
			cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
			ca.Status.GatesDeletion = ptr.To(true)
			tc.change(cluster, ca)
			if got := report.RemovesBeforeDeletion(ca, member.OfCluster(cluster)); got != tc.want {
				t.Errorf("%v", got)
			}
		})
	}
	ca := &addonsv1.ClusterAddon{Status: addonsv1.ClusterAddonStatus{GatesDeletion: ptr.To(true)}}
	if report.RemovesBeforeDeletion(ca, nil) || report.RemovesBeforeDeletion(ca, &member.Member{Deleting: true, Initialized: true}) {
		t.Error("of no cluster, or of one that isn't of Cluster API")
	}
}

// The deletion of a Cluster waits for the add-ons that are left, as long as these say.
func TestFinishDeletion(t *testing.T) {
	start := time.Unix(1000, 0)
	minute, forever := upgrade.Hold{Time: time.Minute}, upgrade.Hold{Time: time.Minute, Forever: true}
	for name, tc := range map[string]struct {
		left  []string
		hold  upgrade.Hold
		after time.Duration
		state addonsv1.GateState
		until time.Duration
	}{
		"nothing is left": {state: addonsv1.GateOpen},
		"something is":    {left: []string{"csi"}, hold: minute, after: 59 * time.Second, state: addonsv1.GateWaiting, until: time.Minute},
		"for too long":    {left: []string{"csi"}, hold: minute, after: time.Minute, state: addonsv1.GateExpired},
		"for ever":        {left: []string{"csi"}, hold: forever, after: time.Hour, state: addonsv1.GateWaiting},
	} {
		t.Run(name, func(t *testing.T) {
			ca := &addonsv1.ClusterAddon{}
			conditions.Set(ca, metav1.Condition{Type: addonsv1.DeletingCondition, Status: metav1.ConditionTrue, Reason: addonsv1.DeletingReason})
			for _, now := range []time.Time{start, start.Add(tc.after)} {
				var all result.All
				for _, name := range tc.left {
					all.Add(result.Addon{Status: addonsv1.AddonStatus{Name: name}})
				}
				report.Report{Observed: &gather.Observed{ClusterAddon: ca, Now: now}, Stored: ca.DeepCopy(), Memory: &report.Memory{}}.FinishDeletion(all, nil, tc.hold)
			}
			d, want := ca.Status.Deletion, time.Time{}
			if tc.until > 0 {
				want = start.Add(tc.until)
			}
			if d.State != tc.state || !d.Since.Time.Equal(start) || !d.Deadline.Time.Equal(want) {
				t.Errorf("%+v", d)
			}
			if c := conditions.Get(ca, addonsv1.DeletingCondition); strings.Contains(c.Message, "csi") != (len(tc.left) > 0) {
				t.Errorf("%+v", c)
			}
		})
	}
}

// longestWait is how long the deletion waits for a cluster that does not answer.
const longestWait = 10 * time.Minute

// The deletion of a Cluster waits ten minutes for one that doesn't answer, also if it was to wait for ever. Nothing changes
// while no condition says that it doesn't.
func TestDeletionOfAClusterThatDoesNotAnswer(t *testing.T) {
	now := time.Unix(1e9, 0)
	waits := func(since time.Duration, deadline time.Time) *addonsv1.ClusterDeletion {
		return &addonsv1.ClusterDeletion{State: addonsv1.GateWaiting, Since: metav1.NewTime(now.Add(-since)), Deadline: metav1.NewTime(deadline), Message: "csi"}
	}
	for name, tc := range map[string]struct {
		before  *addonsv1.ClusterDeletion
		silent  time.Duration // since when it doesn't answer
		answers bool
		unread  time.Duration // since when its records can't be read, 0 if they can
		state   addonsv1.GateState
		again   time.Duration
		isSame  bool // as it was
	}{
		"it begins":                     {before: nil, state: addonsv1.GateWaiting, again: longestWait},
		"it continues":                  {before: waits(time.Minute, now.Add(time.Hour)), silent: time.Minute, state: addonsv1.GateWaiting, again: longestWait - time.Minute},
		"it fell silent meanwhile":      {before: waits(4*time.Minute, now.Add(time.Hour)), silent: time.Minute, state: addonsv1.GateWaiting, again: longestWait - time.Minute},
		"it was silent before":          {before: waits(time.Minute, now.Add(time.Hour)), silent: time.Hour, state: addonsv1.GateWaiting, again: longestWait - time.Minute},
		"for too long":                  {before: waits(longestWait, now.Add(time.Hour)), silent: longestWait, state: addonsv1.GateExpired},
		"it was to wait for a day":      {before: waits(2*time.Hour, now.Add(22*time.Hour)), silent: time.Minute, state: addonsv1.GateWaiting, again: longestWait - time.Minute},
		"it was to wait for ever":       {before: waits(time.Hour, time.Time{}), silent: time.Minute, state: addonsv1.GateWaiting, again: longestWait - time.Minute},
		"nothing was to be waited for":  {before: &addonsv1.ClusterDeletion{State: addonsv1.GateOpen}, silent: time.Minute, state: addonsv1.GateOpen, isSame: true},
		"it had waited for long enough": {before: &addonsv1.ClusterDeletion{State: addonsv1.GateExpired, Since: metav1.NewTime(now.Add(-time.Hour))}, state: addonsv1.GateExpired},
		"its records can't be read":     {before: waits(20*time.Minute, now.Add(time.Hour)), silent: time.Hour, answers: true, unread: time.Minute, state: addonsv1.GateWaiting, again: longestWait - time.Minute},
		"a restart":                     {before: waits(20*time.Minute, now.Add(time.Hour)), silent: time.Hour, answers: true, state: addonsv1.GateWaiting, isSame: true},
		"a restart, for ever":           {before: waits(20*time.Minute, time.Time{}), silent: time.Hour, answers: true, state: addonsv1.GateWaiting, isSame: true},
	} {
		t.Run(name, func(t *testing.T) {
			ca := &addonsv1.ClusterAddon{Status: addonsv1.ClusterAddonStatus{Deletion: tc.before.DeepCopy()}}
			set := func(kind string, status metav1.ConditionStatus, since time.Duration) {
				conditions.Set(ca, metav1.Condition{Type: kind, Status: status, Reason: "Test", LastTransitionTime: metav1.NewTime(now.Add(-since))})
			}
			set(addonsv1.DeletingCondition, metav1.ConditionTrue, 0)
			set(addonsv1.ClusterReachableCondition, metav1.ConditionFalse, tc.silent)
			set(addonsv1.AddonsReadyCondition, metav1.ConditionFalse, time.Hour)
			if tc.answers {
				set(addonsv1.ClusterReachableCondition, metav1.ConditionTrue, tc.silent)
			}
			if tc.unread > 0 {
				set(addonsv1.AddonsReadyCondition, metav1.ConditionUnknown, tc.unread)
			}
			again := (&report.Memory{}).Unseen(ca, &member.Member{}, true, now)
			if ca.Status.Deletion.State != tc.state || again != tc.again {
				t.Errorf("again after %s, %+v", again, ca.Status.Deletion)
			}
			if diff := cmp.Diff(tc.before, ca.Status.Deletion); tc.isSame != (diff == "") {
				t.Error("-before +after: ", diff)
			}
			if told := conditions.GetMessage(ca, addonsv1.DeletingCondition); told != ca.Status.Deletion.Message {
				t.Errorf("it tells %q of %+v", told, ca.Status.Deletion)
			}
		})
	}
}

// Gates of an upgrade stay as they are after a restart, until the cluster is seen, or a condition says that it can't be. Then
// no gate is given up earlier than it was to be.
func TestGatesAfterARestart(t *testing.T) {
	now := time.Unix(1e9, 0)
	at := func(after time.Duration) metav1.Time { return metav1.NewTime(now.Add(after)) }
	cluster := &clusterv1.Cluster{Status: clusterv1.ClusterStatus{ControlPlane: &clusterv1.ClusterControlPlaneStatus{Versions: []clusterv1.StatusVersion{{Version: "v1.35.0"}}}}}
	cluster.Spec.Topology.Version = "v1.36.0"
	open := addonsv1.UpgradeGate{State: addonsv1.GateOpen, Reason: addonsv1.UpgradeAllowedReason}
	waits := addonsv1.UpgradeGate{State: addonsv1.GateWaiting, Reason: addonsv1.UpgradeAddonsNotReadyReason, Message: "cni isn't ready", Deadline: at(22 * time.Hour)}
	for name, tc := range map[string]struct {
		gate   addonsv1.UpgradeGate
		unread bool // its release records can't be read
		reason string
	}{
		"it is open":                  {open, false, addonsv1.UpgradeAllowedReason},
		"it waits for a day":          {waits, false, addonsv1.UpgradeAddonsNotReadyReason},
		"it waits, and isn't seen":    {waits, true, addonsv1.UpgradeClusterUnreachableReason},
		"it was open, and isn't seen": {open, true, addonsv1.UpgradeHoldExpiredReason},
	} {
		t.Run(name, func(t *testing.T) {
			tc.gate.Point, tc.gate.Version, tc.gate.Since = addonsv1.UpgradeBeforeControlPlane, "v1.36.0", at(-2*time.Hour)
			ca := &addonsv1.ClusterAddon{}
			ca.Status.GatesUpgrades, ca.Status.Upgrade = ptr.To(true), &addonsv1.ClusterUpgrade{
				From: "v1.35.0", Step: "v1.36.0", Target: "v1.36.0", Since: tc.gate.Since, Gates: []addonsv1.UpgradeGate{tc.gate},
			}
			conditions.Set(ca, metav1.Condition{Type: addonsv1.ClusterReachableCondition, Status: metav1.ConditionTrue, Reason: fleet.ReasonConnected})
			conditions.Set(ca, metav1.Condition{Type: addonsv1.AddonsReadyCondition, Status: metav1.ConditionFalse, Reason: addonsv1.AddonsProgressingReason})
			if tc.unread {
				conditions.Set(ca, report.RecordsUnread(nil))
			}
			before := ca.DeepCopy()
			if conn := workload.Reach(fleet.NewProvider(fleet.Options{}), ca, "team/prod"); conn != nil {
				t.Fatal("it is connected")
			}
			again := (&report.Memory{}).Unseen(ca, member.OfCluster(cluster), false, now)
			if diff := cmp.Diff(before.Status, ca.Status); !tc.unread && diff != "" {
				t.Error("-before +after: ", diff)
			}
			if got := ca.Status.Upgrade.Gates[0]; got.Reason != tc.reason || tc.reason == addonsv1.UpgradeClusterUnreachableReason && (!got.Deadline.Equal(&tc.gate.Deadline) || again != 22*time.Hour) {
				t.Errorf("looks again after %s, %+v", again, got)
			}
		})
	}
}
