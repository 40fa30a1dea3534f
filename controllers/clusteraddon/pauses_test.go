// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/inputs"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/test/addons"
	"github.com/cluster-chandler/chandler/test/must"
)

// A stack may leave a cluster that doesn't answer, and be paused before the cluster does.
func TestPausedStackRemovesNothingOfWhatItLeft(t *testing.T) {
	going := addons.Installed("platform", "web")
	going.Status = deliver.StatusUninstalling
	for name, tc := range map[string]struct {
		record           deliver.Summary
		paused, unproven bool
		isGone           bool
		was              addonsv1.AddonPhase // for the pause
		want             decide.Fate
		isWatched        bool
	}{
		"it is paused":               {record: addons.Installed("platform", "web"), paused: true, want: decide.StackPaused, isWatched: true},
		"and the removal has begun":  {record: going, paused: true, want: decide.StackPaused, isWatched: true},
		"it is resumed":              {record: addons.Installed("platform", "web"), want: decide.Leaves, isWatched: true},
		"it is gone":                 {record: addons.Installed("platform", "web"), isGone: true, want: decide.Leaves, isWatched: true},
		"it was paused when it went": {record: addons.Installed("platform", "web"), isGone: true, was: addonsv1.AddonRemoving, want: decide.StackPaused, isWatched: true},
		"it was paused, and is back": {record: addons.Installed("platform", "web"), was: addonsv1.AddonRemoving, want: decide.Leaves, isWatched: true},
		"the record may name anyone": {record: addons.Installed("platform", "web"), paused: true, unproven: true, want: decide.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			q, _ := askedCluster(t, tc.record)
			q.ca.Namespace, q.ca.Name, q.paused = "team", "prod", sets.New[string]()
			if tc.was != "" {
				q.ca.Status.Addons = []addonsv1.AddonStatus{{Stack: "platform", Namespace: tc.record.Namespace, Name: "web", Phase: tc.was, Reason: reasons.StackPaused}}
			}
			if tc.unproven {
				q.proofs = &releases.Proofs{}
			}
			s := &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "platform"}}
			if tc.paused {
				s.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
			}
			hub := fake.NewClientBuilder().WithScheme(hubScheme(t))
			if !tc.isGone {
				hub.WithObjects(s)
			}
			q.Client = hub.Build()
			must.Succeed(t, gathering{q}.notePauses(t.Context(), &q.users))
			if got := (removal{q}).factsOf(tc.record).Fate(); got != tc.want {
				t.Errorf("its add-on: %s, want %s", got, tc.want)
			}
			users := q.users.Of(inputs.Object{Kind: inputs.KindStack, Key: client.ObjectKeyFromObject(s)})
			if got := slices.Contains(users, client.ObjectKeyFromObject(q.ca)); got != tc.isWatched {
				t.Errorf("a change of the stack is looked at: %t", got)
			}
		})
	}
}

// The status of an add-on that stays says why, also if it is its first one; and not that its stack is paused once a person is asked
// to confirm the removal: then a confirmation ends the pause of a stack that is gone.
func TestStatusOfWhatStays(t *testing.T) {
	paused := addonsv1.AddonStatus{Stack: "platform", Name: "web", Phase: addonsv1.AddonRemoving, Reason: reasons.StackPaused}
	for name, tc := range map[string]struct {
		was   []addonsv1.AddonStatus
		state decide.StackState
		want  string
	}{
		"it has none yet":                            {nil, decide.JustGone, reasons.StackUndecided},
		"it waits, and the stack may be back":        {[]addonsv1.AddonStatus{paused}, decide.JustGone, reasons.StackPaused},
		"it waits, and a person is to confirm that":  {[]addonsv1.AddonStatus{paused}, decide.Held, reasons.StackUndecided},
		"it waits, and the stack has it no more now": {[]addonsv1.AddonStatus{paused}, decide.Known, reasons.StackPaused},
	} {
		record := addons.Installed("platform", "web")
		q, _ := askedCluster(t, record)
		for i := range tc.was {
			tc.was[i].Namespace = record.Namespace
		}
		q.ca.Status.Addons, q.unresolved = tc.was, map[string]unresolvedStack{"platform": {state: tc.state, why: "Because"}}
		if got := (removal{q}).keptStatus(record, decide.KeepsStatus); got.Reason != tc.want || got.Phase == "" {
			t.Errorf("%s: %s, %s", name, got.Phase, got.Reason)
		}
	}
}
