// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/test/addons"
)

const orphan = addonsv1.DeletionPolicyOrphan

// A stack leaves its add-ons behind as soon as the assignment or the stack says so. An assignment that an earlier program
// wrote says nothing. A pause counts in the same way, and keeps the add-ons wanted on a cluster that isn't selected any more.
func TestPoliciesOfAssignedStacks(t *testing.T) {
	for name, tc := range map[string]struct {
		assigned, written addonsv1.DeletionPolicy
		assignedPaused    *bool
		writtenPaused     bool
		policy            addonsv1.DeletionPolicy
		paused            bool
	}{
		"neither says anything":               {},
		"the assignment says Orphan":          {assigned: orphan, written: addonsv1.DeletionPolicyDelete, policy: orphan},
		"the stack says Orphan":               {written: orphan, policy: orphan},
		"the assignment says that it is":      {assignedPaused: ptr.To(true), paused: true},
		"the stack says that it is paused":    {writtenPaused: true, paused: true},
		"the assignment says that it is not":  {assignedPaused: ptr.To(false)},
		"both say all of it":                  {orphan, orphan, ptr.To(true), true, orphan, true},
		"the assignment says Delete in words": {assigned: addonsv1.DeletionPolicyDelete, policy: addonsv1.DeletionPolicyDelete},
	} {
		t.Run(name, func(t *testing.T) {
			a := outdatedStack("a")
			a.DeletionPolicy, a.Paused = tc.assigned, tc.assignedPaused
			a.written = &addonsv1.AddonStack{Spec: addonsv1.AddonStackSpec{DeletionPolicy: tc.written}}
			if tc.writtenPaused {
				a.written.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
			}
			is := resolveStacks([]assignedStack{a}, member.OfCluster(&clusterv1.Cluster{}), map[string]time.Time{"a": time.Unix(1, 0)}, time.Unix(1, 0))
			if len(is.wanted) != 1 || is.wanted[0].Spec.DeletionPolicy != tc.policy || is.wanted[0].Paused != tc.paused || is.wanted[0].Outdated == tc.paused || is.paused.Has("a") != tc.paused {
				t.Errorf("got %+v, paused %v", is.wanted, is.paused)
			}
		})
	}
}

// The status says that add-ons are left behind if each record was seen that says so.
func TestOrphansAreRecorded(t *testing.T) {
	told, untold := addons.Installed("platform", "told"), addons.Installed("platform", "untold")
	told.DeletionPolicy, untold.DeletionPolicy = orphan, addonsv1.DeletionPolicyDelete
	going, foreign, other := untold, untold, addons.Installed("other", "web")
	going.Complete, going.Status = true, "uninstalling"
	for name, tc := range map[string]struct {
		policy   addonsv1.DeletionPolicy
		records  []deliver.Summary
		unproven bool
		addons   []addonsv1.AddonStatus
		want     addonsv1.DeletionPolicy
	}{
		"all say so":                          {policy: orphan, records: []deliver.Summary{told, other}, want: orphan},
		"the stack deletes":                   {records: []deliver.Summary{told}},
		"one doesn't":                         {policy: orphan, records: []deliver.Summary{told, untold}},
		"there are none":                      {policy: orphan, want: orphan},
		"one isn't ours, and stays anyway":    {policy: orphan, records: []deliver.Summary{told, foreign}, unproven: true, want: orphan},
		"a removal has begun":                 {policy: orphan, records: []deliver.Summary{told, going}, want: orphan},
		"one was installed, and isn't seen":   {policy: orphan, records: []deliver.Summary{told}, addons: []addonsv1.AddonStatus{{Name: "new", Namespace: "apps", Stack: "platform", Revision: 1}}},
		"one isn't installed yet":             {policy: orphan, records: []deliver.Summary{told}, addons: []addonsv1.AddonStatus{{Name: "new", Namespace: "apps", Stack: "platform"}}, want: orphan},
		"another stack's isn't seen, at most": {policy: orphan, addons: []addonsv1.AddonStatus{{Name: "new", Namespace: "apps", Stack: "other", Revision: 1}}, want: orphan},
	} {
		t.Run(name, func(t *testing.T) {
			q, _ := askedCluster(t, tc.records...)
			if tc.unproven {
				q.proofs = addons.Proofs(told)
			}
			q.ca.Spec.Stacks = []addonsv1.StackRevision{{Name: "platform", DeletionPolicy: tc.policy}, {Name: "other"}}
			q.ca.Status.Stacks, q.ca.Status.Addons = []addonsv1.StackStatus{{Name: "platform"}, {Name: "other"}}, tc.addons
			removal{q}.noteOrphans()
			want := []addonsv1.StackStatus{{Name: "platform", RecordedDeletionPolicy: tc.want}, {Name: "other"}}
			if diff := cmp.Diff(want, q.ca.Status.Stacks); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// The status doesn't say so any more before a record is written that says otherwise.
func TestOrphansAreForgottenFirst(t *testing.T) {
	for policy, want := range map[addonsv1.DeletionPolicy]addonsv1.DeletionPolicy{"": "", addonsv1.DeletionPolicyDelete: "", orphan: orphan} {
		q, _ := askedCluster(t)
		q.ca.Spec.Stacks = []addonsv1.StackRevision{{Name: "platform", DeletionPolicy: policy}}
		q.ca.Status.Stacks = []addonsv1.StackStatus{{Name: "platform", RecordedDeletionPolicy: orphan}}
		if ends := (removal{q}).noteOrphans(); ends != (want == "") || q.ca.Status.Stacks[0].RecordedDeletionPolicy != want {
			t.Errorf("%q: %t, %+v", policy, ends, q.ca.Status.Stacks)
		}
	}
}

// An add-on isn't removed while its record can't be told that it is left behind.
func TestUntoldOrphanIsNotRemoved(t *testing.T) {
	record := addons.Installed("platform", "web")
	record.DeletionPolicy = addonsv1.DeletionPolicyDelete
	q, asked := askedCluster(t, record)
	q.ca.Spec.Stacks = []addonsv1.StackRevision{{Name: "platform", DeletionPolicy: orphan}}
	q.leaving = []deliver.Summary{record}
	if err := (removal{q}).tellOrphans(t.Context()); err == nil {
		t.Fatal("the cluster answers")
	}
	before := *asked
	var all result
	removal{q}.removeLeaving(t.Context(), nil, &all)
	if *asked != before || len(all.statuses) != 1 {
		t.Errorf("asked for %d times, %+v", *asked-before, all.statuses)
	}
}

// A paused stack tells no record anything.
func TestPausedStackTellsNothing(t *testing.T) {
	record := addons.Installed("platform", "web")
	q, asked := askedCluster(t, record)
	q.ca.Spec.Stacks = []addonsv1.StackRevision{{Name: "platform", DeletionPolicy: orphan}}
	q.paused = sets.New("platform")
	if err := (removal{q}).tellOrphans(t.Context()); err != nil || *asked > 0 {
		t.Errorf("%v, asked for %d times", err, *asked)
	}
}

// The time of a pause doesn't count as time in which a revision wasn't ready.
func TestStartAfterPause(t *testing.T) {
	then, now := time.Unix(1e9, 0), time.Unix(1e9+7200, 0)
	status := func(reason string) *addonsv1.ClusterAddonStatus {
		return &addonsv1.ClusterAddonStatus{
			Stacks: []addonsv1.StackStatus{{Name: "platform", Revision: "1", State: addonsv1.StackPending, Since: metav1.NewTime(then), Started: metav1.NewTime(then), WasReady: ptr.To(true)}},
			Addons: []addonsv1.AddonStatus{{Name: "web", Stack: "platform", Phase: addonsv1.AddonPending, Reason: reason}},
		}
	}
	for name, tc := range map[string]struct {
		was, is string
		want    time.Time
	}{
		"it is resumed":      {reasons.StackPaused, reasons.WaitingForDependency, now},
		"it is paused":       {reasons.WaitingForDependency, reasons.StackPaused, then},
		"it stays paused":    {reasons.StackPaused, reasons.StackPaused, then},
		"it was never so":    {"", reasons.WaitingForDependency, then},
		"it is of one stack": {reasons.WaitingForPrecondition, "", then},
	} {
		is := stackStates(status(tc.was), status(tc.is), []addonsv1.StackRevision{{Name: "platform", Revision: "1"}}, nil, true, now)
		if got := is[0]; !got.Started.Time.Equal(tc.want) || !ptr.Deref(got.WasReady, false) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A paused add-on says that it waits, but for one that failed: a pause heals nothing.
func TestStayOfPaused(t *testing.T) {
	for _, was := range []addonsv1.AddonStatus{
		{Phase: addonsv1.AddonReady}, {Phase: addonsv1.AddonFailed, Reason: deliver.ReasonHookFailed}, {Phase: addonsv1.AddonUpgrading, Reason: deliver.ReasonWaitingForObjects},
	} {
		t.Run(fmt.Sprint(was.Phase), func(t *testing.T) {
			q, _ := askedCluster(t)
			a := addons.Wanted("platform", "web")
			was.Name, was.Namespace, was.Stack = a.Name, a.Release().Namespace, "platform"
			q.ca.Status.Addons = []addonsv1.AddonStatus{was}
			of := &turn{addon: &a, status: a.Status()}
			one := delivery{q}.stay(of, decide.AwaitResume)
			one.say(delivery{q}.cameOf(t.Context(), of, decide.AwaitResume, one.status).Say())
			want := [2]string{string(addonsv1.AddonPending), reasons.StackPaused}
			if was.Phase == addonsv1.AddonFailed {
				want = [2]string{string(was.Phase), was.Reason}
			}
			if got := [2]string{string(one.status.Phase), one.status.Reason}; got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}
