// SPDX-License-Identifier: Apache-2.0

package standing_test

import (
	"cmp"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/standing"
)

// A rollout sees of a cluster why nothing can be done there, and how its add-ons are at the revision that it is to have. It does so
// amid upgrades of Kubernetes, moves, pauses, and another class of the cluster.
func TestClusterOfARollout(t *testing.T) {
	began := time.Unix(1e9, 0)
	set := func(kind string, status metav1.ConditionStatus, reason string) func(*addonsv1.ClusterAddon) {
		return func(ca *addonsv1.ClusterAddon) {
			conditions.Set(ca, metav1.Condition{Type: kind, Status: status, Reason: reason})
		}
	}
	unread := set(addonsv1.AddonsReadyCondition, metav1.ConditionUnknown, addonsv1.AddonsUnknownReason)
	at := func(revision string) func(*addonsv1.ClusterAddon) {
		return func(ca *addonsv1.ClusterAddon) {
			ca.Spec.Stacks[0].Revision, ca.Status.Stacks[0].Revision = revision, revision
		}
	}
	both := func(changes ...func(*addonsv1.ClusterAddon)) func(*addonsv1.ClusterAddon) {
		return func(ca *addonsv1.ClusterAddon) {
			for _, change := range changes {
				change(ca)
			}
		}
	}
	had := func(previous string) func(*addonsv1.ClusterAddon) {
		return func(ca *addonsv1.ClusterAddon) { ca.Status.Stacks[0].Previous = previous }
	}
	waits := func(reason string) func(*addonsv1.ClusterAddon) {
		return func(ca *addonsv1.ClusterAddon) {
			ca.Status.Addons[0].Phase, ca.Status.Addons[0].Reason = addonsv1.AddonPending, reason
			ca.Status.Stacks[0].State = addonsv1.StackPending
		}
	}
	for name, tc := range map[string]struct {
		change      func(*addonsv1.ClusterAddon)
		turn        bool
		assigned    string
		state       addonsv1.StackState
		away        string
		unreachable bool
		unseen      bool
		notReady    bool // before
		fresh       bool // it hasn't reported on its revision
		rejected    bool // the target is
		back        string
	}{
		"it is ready at the target":  {change: both(), assigned: "new", state: addonsv1.StackReady},
		"it has a turn":              {change: at("old"), turn: true, assigned: "new", state: addonsv1.StackProgressing, fresh: true},
		"it waits for its turn":      {change: at("old"), assigned: "old", state: addonsv1.StackReady},
		"it waits for its first one": {change: func(ca *addonsv1.ClusterAddon) { ca.Spec.Stacks, ca.Status.Stacks = nil, nil }, state: addonsv1.StackProgressing, fresh: true},
		"its Cluster is paused":      {change: set(addonsv1.PausedCondition, metav1.ConditionTrue, "Paused"), assigned: "new", state: addonsv1.StackReady, away: "Paused"},
		"its Cluster goes":           {change: set(addonsv1.DeletingCondition, metav1.ConditionTrue, "Deleting"), assigned: "new", state: addonsv1.StackReady, away: "Deleting"},
		"its control plane comes":    {change: set(addonsv1.ControlPlaneInitializedCondition, metav1.ConditionFalse, "Early"), assigned: "new", state: addonsv1.StackReady, away: "Early"},
		"it doesn't answer":          {change: set(addonsv1.ClusterReachableCondition, metav1.ConditionFalse, "Gone"), assigned: "new", state: addonsv1.StackReady, away: "Gone", unreachable: true},
		"it wasn't seen yet":         {change: set(addonsv1.ClusterReachableCondition, metav1.ConditionUnknown, "Connecting"), assigned: "new", state: addonsv1.StackReady, away: "Connecting", unreachable: true, unseen: true},
		"its records can't be read":  {change: unread, assigned: "new", state: addonsv1.StackReady, away: addonsv1.AddonsUnknownReason},
		"nor before its turn":        {change: both(at("old"), unread), assigned: "old", state: addonsv1.StackReady, away: addonsv1.AddonsUnknownReason},
		"it is held":                 {change: both(at("old"), hold), assigned: "old", state: addonsv1.StackReady, away: standing.HeldReason},
		"it is held, and has it":     {change: hold, assigned: "new", state: addonsv1.StackReady},
		"a removal is held": {change: both(at("old"), func(ca *addonsv1.ClusterAddon) {
			ca.Spec.Stacks[0].HeldRemoval = &addonsv1.HeldRemoval{}
		}), assigned: "old", state: addonsv1.StackReady, away: addonsv1.RemovalHeldReason},
		"a removal is held as a whole, and it has a turn": {change: both(at("old"), func(ca *addonsv1.ClusterAddon) {
			ca.Spec.Stacks[0].HeldRemoval = &addonsv1.HeldRemoval{}
		}), turn: true, assigned: "new", state: addonsv1.StackProgressing, away: addonsv1.RemovalHeldReason, fresh: true},
		"a removal is held beside the target": {change: func(ca *addonsv1.ClusterAddon) {
			ca.Spec.Stacks[0].HeldRemoval = &addonsv1.HeldRemoval{}
		}, assigned: "new", state: addonsv1.StackReady},
		"its add-on moved": {change: func(ca *addonsv1.ClusterAddon) {
			ca.Spec.Stacks[0].MovedAddons, ca.Status.Addons = []string{"default/web"}, nil
		}, assigned: "new", state: addonsv1.StackReady},
		"its records can't be read on its way": {change: both(unread, func(ca *addonsv1.ClusterAddon) {
			ca.Status.Stacks[0].State = addonsv1.StackProgressing
		}), assigned: "new", state: addonsv1.StackProgressing},
		"an add-on waits for the control plane": {change: waits(reasons.WaitingForControlPlane), assigned: "new", state: addonsv1.StackPending, away: reasons.WaitingForUpgrade},
		"an add-on waits for workers":           {change: waits(reasons.WaitingForWorkers), assigned: "new", state: addonsv1.StackPending, away: reasons.WaitingForUpgrade},
		"an add-on that goes waits":             {change: waits(reasons.WaitingForUpgrade), assigned: "new", state: addonsv1.StackPending, away: reasons.WaitingForUpgrade},
		"it waits for an upgrade before its turn": {change: both(at("old"), waits(reasons.WaitingForControlPlane)), assigned: "old",
			state: addonsv1.StackPending},
		"no version is for its Kubernetes": {change: waits(reasons.NoCompatibleVersion), assigned: "new", state: addonsv1.StackPending},
		"it comes from another management cluster": {change: func(ca *addonsv1.ClusterAddon) { ca.Status = addonsv1.ClusterAddonStatus{} },
			assigned: "new", state: addonsv1.StackProgressing, fresh: true},
		"it comes from another class": {change: both(at("old"), func(ca *addonsv1.ClusterAddon) {
			ca.Status.Stacks[0].Name, ca.Status.Addons[0].Stack = "other", "other"
		}), assigned: "old", state: addonsv1.StackProgressing, fresh: true},
		"it failed at the revision before": {change: both(at("old"), func(ca *addonsv1.ClusterAddon) {
			ca.Status.Stacks[0].State = addonsv1.StackFailed
		}), turn: true, assigned: "new", state: addonsv1.StackProgressing, notReady: true, fresh: true},
		"the target is rejected":          {change: had("old"), rejected: true, assigned: "new", state: addonsv1.StackReady, back: "old"},
		"it goes back":                    {change: had("old"), rejected: true, turn: true, assigned: "old", state: addonsv1.StackProgressing, fresh: true, back: "old"},
		"nothing is known to go back to":  {change: both(), rejected: true, assigned: "new", state: addonsv1.StackReady, away: standing.NothingToGoBackToReason},
		"what it had is gone":             {change: had("gone"), rejected: true, assigned: "new", state: addonsv1.StackReady, away: standing.NothingToGoBackToReason},
		"it had another one all the time": {change: at("old"), rejected: true, turn: true, assigned: "old", state: addonsv1.StackReady, back: "old"},
		"an add-on is new in it":          {change: func(ca *addonsv1.ClusterAddon) { ca.Status.Addons = nil }, assigned: "new", state: addonsv1.StackProgressing},
	} {
		t.Run(name, func(t *testing.T) {
			ca := &addonsv1.ClusterAddon{
				ObjectMeta: metav1.ObjectMeta{Name: "prod"},
				Spec:       addonsv1.ClusterAddonSpec{Stacks: []addonsv1.StackRevision{{Name: "platform", Revision: "new"}}},
				Status: addonsv1.ClusterAddonStatus{
					Addons: []addonsv1.AddonStatus{{Name: "web", Namespace: "default", Stack: "platform", Phase: addonsv1.AddonReady}},
					Stacks: []addonsv1.StackStatus{{
						Name: "platform", Revision: "new", State: addonsv1.StackReady, Since: metav1.NewTime(began), Started: metav1.NewTime(began), WasReady: ptr.To(true),
					}},
				},
			}
			for _, kind := range []string{addonsv1.ControlPlaneInitializedCondition, addonsv1.ClusterReachableCondition} {
				conditions.Set(ca, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Test"})
			}
			tc.change(ca)
			q := standing.RolloutOf(&addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Name: "platform"}}, []appsv1.ControllerRevision{revision("new", 2, tc.rejected), revision("old", 1, false)})
			if tc.turn {
				q.Turns.Insert("prod")
			}
			is := q.Input(began.Add(time.Hour), "", nil, []standing.Cluster{{ClusterAddon: ca}}).Clusters[0]
			is.Labels, is.AwaySince, is.Joined, is.Since, is.Unfinished = nil, time.Time{}, time.Time{}, time.Time{}, false
			want := rollout.Cluster{
				Name: "prod", Assigned: tc.assigned, State: tc.state, Away: tc.away, Unreachable: tc.unreachable, Unseen: tc.unseen, WasReady: !tc.notReady, GoesBackTo: cmp.Or(tc.back, is.GoesBackTo),
			}
			if !tc.fresh {
				want.Started = began
			}
			if diff := gocmp.Diff(want, is); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// revision returns a revision with one add-on, which is rejected or not.
func revision(name string, number int64, rejected bool) appsv1.ControllerRevision {
	r := appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name}, Revision: number, Data: runtime.RawExtension{Raw: []byte(`{"addons":[{"name":"web"}]}`)}}
	(&rollout.Attempt{Number: number, Cause: rollout.Edited, Started: time.Unix(1e9, 0)}).Note(&r)
	if rejected {
		metav1.SetMetaDataAnnotation(&r.ObjectMeta, addonsv1.RolloutRejectedAnnotation, "broken")
	}
	return r
}

// hold keeps a cluster out of the stack's rollouts.
func hold(ca *addonsv1.ClusterAddon) {
	ca.Annotations = map[string]string{addonsv1.HoldRolloutAnnotation: "platform"}
}
