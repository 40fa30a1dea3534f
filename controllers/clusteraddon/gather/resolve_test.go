// SPDX-License-Identifier: Apache-2.0

package gather_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/gather"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/test/addons"
)

const orphan = addonsv1.DeletionPolicyOrphan

func TestDeselects(t *testing.T) {
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "prod", Labels: map[string]string{"env": "prod"}}}
	cluster.Spec.Topology.ClassRef.Name = "v2"
	broken := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: "Near"}}}
	for name, tc := range map[string]struct {
		spec addonsv1.AddonStackSpec
		want bool
	}{
		"its class":                       {spec: addonsv1.AddonStackSpec{ClassNames: []string{"v1", "v2"}}},
		"its previous class":              {spec: addonsv1.AddonStackSpec{ClassNames: []string{"v1"}}, want: true},
		"its labels":                      {spec: addonsv1.AddonStackSpec{ClusterSelector: &metav1.LabelSelector{MatchLabels: cluster.Labels}}},
		"its labels, not its class":       {spec: addonsv1.AddonStackSpec{ClusterSelector: &metav1.LabelSelector{}, ClassNames: []string{"v1"}}, want: true},
		"a selector that nobody can read": {spec: addonsv1.AddonStackSpec{ClusterSelector: broken}},
	} {
		all := []gather.Stack{{StackRevision: addonsv1.StackRevision{Name: "a", Revision: "a-1"}, Written: &addonsv1.AddonStack{Spec: tc.spec}, Spec: &tc.spec}}
		is := gather.Resolve(all, member.OfCluster(cluster), map[string]time.Time{"a": time.Unix(0, 0)}, time.Unix(1000, 0))
		if _, got := is.Unresolved["a"]; got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func outdatedStack(name string) gather.Stack {
	spec := addonsv1.AddonStackSpec{ClassNames: []string{"previous"}, Addons: []addonsv1.Addon{{Name: "of-" + name}}}
	return gather.Stack{StackRevision: addonsv1.StackRevision{Name: name, Revision: name + "-1"}, Written: &addonsv1.AddonStack{Spec: spec}, Spec: &spec}
}

// The time that an assignment is given begins again if it followed in between.
func TestTimeForAssignmentsBeginsAnew(t *testing.T) {
	now, cluster, since := time.Unix(1000, 0), member.OfCluster(&clusterv1.Cluster{}), map[string]time.Time(nil)
	update := func(after time.Duration, names ...string) map[string]time.Time {
		var all []gather.Stack
		for _, name := range names {
			all = append(all, outdatedStack(name))
		}
		since = gather.Resolve(all, cluster, since, now.Add(after)).OutdatedSince
		return since
	}
	update(0, "a")
	if diff := cmp.Diff(map[string]time.Time{"a": now, "b": now.Add(time.Second)}, update(time.Second, "a", "b")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	update(2*time.Second, "b")
	if got := update(3*time.Second, "a"); !got["a"].Equal(now.Add(3 * time.Second)) {
		t.Errorf("a is outdated since %s, though it wasn't in between", got["a"])
	}
	if got := update(4 * time.Second); len(got) != 0 {
		t.Errorf("left in memory: %v", got)
	}
}

// An assignment that doesn't follow is given some time, and then told. Nothing of it is
// wanted then, and its stack is unresolved: so what is installed stays.
func TestAssignmentsThatDoNotFollow(t *testing.T) {
	cluster, since := member.OfCluster(&clusterv1.Cluster{}), map[string]time.Time(nil)
	selecting := outdatedStack("b")
	selecting.Spec = &addonsv1.AddonStackSpec{ClusterSelector: &metav1.LabelSelector{}, Addons: selecting.Spec.Addons}
	expect := func(after time.Duration, wantAddons string, wantAgain time.Duration) {
		t.Helper()
		got := gather.Resolve([]gather.Stack{outdatedStack("a"), selecting}, cluster, since, time.Unix(1000, 0).Add(after))
		since = got.OutdatedSince
		var stacks string
		for _, a := range got.Wanted {
			if stacks += a.Stack; a.Outdated != (a.Stack == "a") {
				t.Errorf("%s is outdated: %v", a.Name, a.Outdated)
			}
		}
		_, unresolved := got.Unresolved["a"]
		if stacks != wantAddons || unresolved == (wantAddons == "ab") || len(got.Unresolved) > 1 || got.RecheckAfter != wantAgain {
			t.Errorf("after %s: wanted are those of %s, unresolved %v, again in %s; want %s and %s", after, stacks, got.Unresolved, got.RecheckAfter, wantAddons, wantAgain)
		}
	}
	expect(0, "ab", gather.AssignmentGrace)
	expect(gather.AssignmentGrace-time.Second, "ab", time.Second)
	expect(gather.AssignmentGrace, "b", 0)
	expect(time.Hour, "b", 0)
}

// A stack of which nothing is known keeps what it has, unless it is another instance's and has run. What a stack that is gone
// installed stays until the assignment has had time to follow. A removal that is held keeps all.
func TestUnresolvedStacks(t *testing.T) {
	began, there, held := time.Unix(1000, 0), &addonsv1.AddonStack{}, &addonsv1.HeldRemoval{}
	for name, tc := range map[string]struct {
		stack gather.Stack
		after time.Duration
		want  decide.StackState
	}{
		"it has no valid revision yet":            {gather.Stack{Written: there}, gather.AssignmentGrace, decide.Undecided},
		"its revision can't be found":             {gather.Stack{Written: there, StackRevision: addonsv1.StackRevision{Revision: "a-1"}}, gather.AssignmentGrace, decide.Undecided},
		"another instance's, that has yet to run": {gather.Stack{}, gather.AssignmentGrace, decide.Unseen},
		"gone, at first":                          {gather.Stack{StackRevision: addonsv1.StackRevision{Revision: "a-1"}}, 0, decide.JustGone},
		"gone, for all":                           {gather.Stack{Deleted: true, StackRevision: addonsv1.StackRevision{Revision: "a-1"}}, gather.AssignmentGrace, decide.JustGone},
		"gone, and never taken out":               {gather.Stack{Deleted: true, StackRevision: addonsv1.StackRevision{Revision: "a-1"}}, gather.DeletionGrace, decide.Foreign},
		"gone, or another instance's":             {gather.Stack{StackRevision: addonsv1.StackRevision{Revision: "a-1"}}, gather.AssignmentGrace, decide.Foreign},
		"gone, and held":                          {gather.Stack{StackRevision: addonsv1.StackRevision{Revision: "a-1", HeldRemoval: held}}, gather.AssignmentGrace, decide.Held},
	} {
		tc.stack.Name = "a"
		s := gather.Resolve([]gather.Stack{tc.stack}, member.OfCluster(&clusterv1.Cluster{}), map[string]time.Time{"a": began}, began.Add(tc.after))
		if got := s.Unresolved["a"]; got.State != tc.want || got.Why == "" || len(s.HeldRemovals) > 0 != (tc.want == decide.Held) {
			t.Errorf("%s: %+v, held %v", name, got, s.HeldRemovals)
		}
	}
}

// A stack that this instance doesn't see may be there for another one. The API server is asked once the assignment should have
// followed.
func TestStackThatIsThereForNobody(t *testing.T) {
	there := &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "theirs"}}
	hub := fake.NewClientBuilder().WithScheme(addons.Scheme(t)).WithObjects(there).Build()
	none := fake.NewClientBuilder().WithScheme(addons.Scheme(t)).Build()
	for name, want := range map[string]bool{"gone": true, "theirs": false} {
		now, c := time.Now(), addons.Given(t)
		r := gather.Reader{Cache: none, Inputs: c.Inputs, OutdatedSince: map[string]time.Time{name: now.Add(time.Second - gather.AssignmentGrace)}, Now: now}
		all, err := r.Stacks(t.Context(), []addonsv1.StackRevision{{Name: name}}) // it would panic if it asked
		if err != nil || all[0].Deleted {
			t.Errorf("%s is gone after a moment: %v", name, err)
		}
		r.Direct, r.Now = hub, now.Add(time.Second)
		if all, err = r.Stacks(t.Context(), []addonsv1.StackRevision{{Name: name}}); err != nil || all[0].Deleted != want {
			t.Errorf("%s is gone: %+v, %v", name, all, err)
		}
	}
}

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
			a.Written = &addonsv1.AddonStack{Spec: addonsv1.AddonStackSpec{DeletionPolicy: tc.written}}
			if tc.writtenPaused {
				a.Written.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
			}
			is := gather.Resolve([]gather.Stack{a}, member.OfCluster(&clusterv1.Cluster{}), map[string]time.Time{"a": time.Unix(1, 0)}, time.Unix(1, 0))
			if len(is.Wanted) != 1 || is.Wanted[0].Spec.DeletionPolicy != tc.policy || is.Wanted[0].Paused != tc.paused || is.Wanted[0].Outdated == tc.paused || is.Paused.Has("a") != tc.paused {
				t.Errorf("got %+v, paused %v", is.Wanted, is.Paused)
			}
		})
	}
}
