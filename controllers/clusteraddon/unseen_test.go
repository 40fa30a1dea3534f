// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/member"
)

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
		"it begins":                     {before: nil, state: addonsv1.GateWaiting, again: unreachableDeletion},
		"it continues":                  {before: waits(time.Minute, now.Add(time.Hour)), silent: time.Minute, state: addonsv1.GateWaiting, again: unreachableDeletion - time.Minute},
		"it fell silent meanwhile":      {before: waits(4*time.Minute, now.Add(time.Hour)), silent: time.Minute, state: addonsv1.GateWaiting, again: unreachableDeletion - time.Minute},
		"it was silent before":          {before: waits(time.Minute, now.Add(time.Hour)), silent: time.Hour, state: addonsv1.GateWaiting, again: unreachableDeletion - time.Minute},
		"for too long":                  {before: waits(unreachableDeletion, now.Add(time.Hour)), silent: unreachableDeletion, state: addonsv1.GateExpired},
		"it was to wait for a day":      {before: waits(2*time.Hour, now.Add(22*time.Hour)), silent: time.Minute, state: addonsv1.GateWaiting, again: unreachableDeletion - time.Minute},
		"it was to wait for ever":       {before: waits(time.Hour, time.Time{}), silent: time.Minute, state: addonsv1.GateWaiting, again: unreachableDeletion - time.Minute},
		"nothing was to be waited for":  {before: &addonsv1.ClusterDeletion{State: addonsv1.GateOpen}, silent: time.Minute, state: addonsv1.GateOpen, isSame: true},
		"it had waited for long enough": {before: &addonsv1.ClusterDeletion{State: addonsv1.GateExpired, Since: metav1.NewTime(now.Add(-time.Hour))}, state: addonsv1.GateExpired},
		"its records can't be read":     {before: waits(20*time.Minute, now.Add(time.Hour)), silent: time.Hour, answers: true, unread: time.Minute, state: addonsv1.GateWaiting, again: unreachableDeletion - time.Minute},
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
			r := &Reconciler{Clock: testclock.NewFakePassiveClock(now)}
			again := r.unseen(ca, &member.Member{}, true).RequeueAfter
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
				conditions.Set(ca, recordsUnread(nil))
			}
			before := ca.DeepCopy()
			r := &Reconciler{Clock: testclock.NewFakePassiveClock(now), Fleet: fleet.NewProvider(fleet.Options{})}
			if conn := r.reach(ca, "team/prod"); conn != nil {
				t.Fatal("it is connected")
			}
			again := r.unseen(ca, member.OfCluster(cluster), false).RequeueAfter
			if diff := cmp.Diff(before.Status, ca.Status); !tc.unread && diff != "" {
				t.Error("-before +after: ", diff)
			}
			if got := ca.Status.Upgrade.Gates[0]; got.Reason != tc.reason || tc.reason == addonsv1.UpgradeClusterUnreachableReason && (!got.Deadline.Equal(&tc.gate.Deadline) || again != 22*time.Hour) {
				t.Errorf("looks again after %s, %+v", again, got)
			}
		})
	}
}

// unreadRecords are those of a cluster that nobody has read yet. The error is of the last try.
type unreadRecords struct{ err error }

func (unreadRecords) Of(multicluster.ClusterName) (map[deliver.Release]deliver.Summary, bool) {
	return nil, false
}
func (u unreadRecords) Failure(multicluster.ClusterName) error { return u.err }

// While the records aren't read, an upgrade and the deletion of a Cluster wait for them, and are looked at again at their deadline.
func TestUnreadRecordsAreWaitedForForATime(t *testing.T) {
	for _, removes := range []bool{false, true} {
		for _, last := range []error{nil, errors.New("no answer")} {
			q, _ := askedCluster(t)
			cluster := &clusterv1.Cluster{}
			cluster.Spec.Topology.Version = "v1.25.0"
			cluster.Status.ControlPlane = &clusterv1.ClusterControlPlaneStatus{Versions: []clusterv1.StatusVersion{{Version: "v1.24.0"}}}
			q.cluster, q.ca.Status.GatesUpgrades = member.OfCluster(cluster), ptr.To(true)
			q.records, q.lanes, q.Queue, q.removes = unreadRecords{last}, newLanes(2), &Queue{}, removes
			conditions.Set(q.ca, metav1.Condition{Type: addonsv1.ClusterReachableCondition, Status: metav1.ConditionTrue, Reason: fleet.ReasonConnected})
			if last != nil { // else they were never read
				conditions.Set(q.ca, metav1.Condition{Type: addonsv1.AddonsReadyCondition, Status: metav1.ConditionTrue, Reason: addonsv1.AddonsReadyReason})
			}
			if result, err := q.deliver(t.Context(), q); err != nil || result.RequeueAfter == 0 || (q.ca.Status.Deletion != nil) != removes {
				t.Errorf("deletion %t, %v: %+v, %v, %+v", removes, last, result, err, q.ca.Status.Deletion)
			}
			if told := conditions.Get(q.ca, addonsv1.AddonsReadyCondition); told == nil || told.Status != metav1.ConditionUnknown {
				t.Errorf("deletion %t, %v: told of the records: %+v", removes, last, told)
			}
		}
	}
}
