// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// The deletion of a Cluster waits ten minutes for one that doesn't answer, also if it was to wait for ever.
func TestDeletionOfAClusterThatDoesNotAnswer(t *testing.T) {
	now := time.Unix(1e9, 0)
	waits := func(since time.Duration, deadline time.Time) *addonsv1.ClusterDeletion {
		return &addonsv1.ClusterDeletion{State: addonsv1.GateWaiting, Since: metav1.NewTime(now.Add(-since)), Deadline: metav1.NewTime(deadline)}
	}
	for name, tc := range map[string]struct {
		before *addonsv1.ClusterDeletion
		silent time.Duration // since when it doesn't answer, 0 if nobody has noted that
		state  addonsv1.GateState
		again  time.Duration
	}{
		"it begins":                     {before: nil, state: addonsv1.GateWaiting, again: unreachableDeletion},
		"it continues":                  {before: waits(time.Minute, now.Add(time.Hour)), state: addonsv1.GateWaiting, again: unreachableDeletion - time.Minute},
		"it fell silent meanwhile":      {before: waits(4*time.Minute, now.Add(time.Hour)), silent: time.Minute, state: addonsv1.GateWaiting, again: unreachableDeletion - time.Minute},
		"it was silent before":          {before: waits(time.Minute, now.Add(time.Hour)), silent: time.Hour, state: addonsv1.GateWaiting, again: unreachableDeletion - time.Minute},
		"for too long":                  {before: waits(unreachableDeletion, now.Add(time.Hour)), state: addonsv1.GateExpired},
		"it was to wait for ever":       {before: waits(time.Hour, time.Time{}), silent: time.Minute, state: addonsv1.GateWaiting, again: unreachableDeletion - time.Minute},
		"nothing was to be waited for":  {before: &addonsv1.ClusterDeletion{State: addonsv1.GateOpen}, silent: time.Minute, state: addonsv1.GateOpen},
		"it had waited for long enough": {before: &addonsv1.ClusterDeletion{State: addonsv1.GateExpired, Since: metav1.NewTime(now.Add(-time.Hour))}, state: addonsv1.GateExpired},
	} {
		t.Run(name, func(t *testing.T) {
			ca := &addonsv1.ClusterAddon{Status: addonsv1.ClusterAddonStatus{Deletion: tc.before}}
			if tc.silent > 0 {
				conditions.Set(ca, metav1.Condition{
					Type: addonsv1.ClusterReachableCondition, Status: metav1.ConditionFalse, Reason: "ConnectionTimedOut", LastTransitionTime: metav1.NewTime(now.Add(-tc.silent)),
				})
			}
			again := deletionUnseen(ca, now).RequeueAfter
			if ca.Status.Deletion.State != tc.state || again != tc.again {
				t.Errorf("again after %s, %+v", again, ca.Status.Deletion)
			}
		})
	}
}

// Another management cluster continues with the release that says so, and with no other one.
func TestTakenOverIsOneRelease(t *testing.T) {
	ca := &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{UID: "1"}, Status: addonsv1.ClusterAddonStatus{ObservedUID: "1", Addons: []addonsv1.AddonStatus{
		{Namespace: "apps", Name: "web", Reason: deliver.ReasonReleaseTakenOver}, {Namespace: "apps", Name: "db"},
	}}}
	record := func(namespace, name string) deliver.Summary {
		return deliver.Summary{Release: deliver.Release{Namespace: namespace, Name: name}}
	}
	for _, other := range []deliver.Summary{record("apps", "db"), record("other", "web"), record("apps", "cache")} {
		if isTakenOver(ca, other) {
			t.Errorf("%s is taken over", other.Release)
		}
	}
	if !isTakenOver(ca, record("apps", "web")) {
		t.Error("it isn't taken over")
	}
	if ca.Status.ObservedUID = "backup"; isTakenOver(ca, record("apps", "web")) {
		t.Error("the status of another ClusterAddon says so")
	}
}

// An optional source of values is missed if it was there at an installation by the same spec.
func TestWhichValuesWereThere(t *testing.T) {
	a := &addon{Addon: addonsv1.Addon{Name: "web", Namespace: "apps"}, stack: "platform"}
	ref, other := addonsv1.ValuesReference{Kind: "Secret", Name: "values"}, addonsv1.ValuesReference{Kind: "Secret", Name: "other"}
	record := deliver.Summary{Terms: deliver.Terms{Spec: specDigest(a), Optional: stack.ValuesName(other) + "," + stack.ValuesName(ref)}}
	if !hadValues(record, a, ref) {
		t.Error("it was there")
	}
	if hadValues(record, a, addonsv1.ValuesReference{Kind: "Secret", Name: "none"}) {
		t.Error("it was never there")
	}
	if record.Spec = "another"; hadValues(record, a, ref) {
		t.Error("it was there for another spec, which may have had no use for it")
	}
}
