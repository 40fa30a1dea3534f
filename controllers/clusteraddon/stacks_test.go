// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/workload"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/test/addons"
)

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
		if got := deselects(&tc.spec, member.OfCluster(cluster)); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// Of a ClusterAddon that is gone nothing is left in memory.
func TestForget(t *testing.T) {
	r := &Reconciler{lanes: newLanes(2), Deliverer: deliver.New(deliver.Options{})}
	one := client.ObjectKey{Namespace: "team", Name: "one"}
	r.memoryOf(one).lastEvents = &addonsv1.ClusterAddonStatus{ReadyAddons: "1/1"}
	if known := r.memoryOf(one).lastEvents; known == nil {
		t.Error("it is forgotten at once")
	}
	r.forget(one)
	if known := r.memoryOf(one).lastEvents; known != nil {
		t.Errorf("left in memory: %v", known)
	}
}

func outdatedStack(name string) assignedStack {
	spec := addonsv1.AddonStackSpec{ClassNames: []string{"previous"}, Addons: []addonsv1.Addon{{Name: "of-" + name}}}
	return assignedStack{StackRevision: addonsv1.StackRevision{Name: name, Revision: name + "-1"}, written: &addonsv1.AddonStack{Spec: spec}, spec: &spec}
}

// The time that an assignment is given begins again if it followed in between.
func TestTimeForAssignmentsBeginsAnew(t *testing.T) {
	now, cluster, since := time.Unix(1000, 0), member.OfCluster(&clusterv1.Cluster{}), map[string]time.Time(nil)
	update := func(after time.Duration, names ...string) map[string]time.Time {
		var all []assignedStack
		for _, name := range names {
			all = append(all, outdatedStack(name))
		}
		since = resolveStacks(all, cluster, since, now.Add(after)).outdatedSince
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
	selecting.spec = &addonsv1.AddonStackSpec{ClusterSelector: &metav1.LabelSelector{}, Addons: selecting.spec.Addons}
	expect := func(after time.Duration, wantAddons string, wantAgain time.Duration) {
		t.Helper()
		got := resolveStacks([]assignedStack{outdatedStack("a"), selecting}, cluster, since, time.Unix(1000, 0).Add(after))
		since = got.outdatedSince
		var addons string
		for _, a := range got.wanted {
			if addons += a.Stack; a.Outdated != (a.Stack == "a") {
				t.Errorf("%s is outdated: %v", a.Name, a.Outdated)
			}
		}
		_, unresolved := got.unresolved["a"]
		if addons != wantAddons || unresolved == (wantAddons == "ab") || len(got.unresolved) > 1 || got.recheckAfter != wantAgain {
			t.Errorf("after %s: wanted are those of %s, unresolved %v, again in %s; want %s and %s", after, addons, got.unresolved, got.recheckAfter, wantAddons, wantAgain)
		}
	}
	expect(0, "ab", assignmentGrace)
	expect(assignmentGrace-time.Second, "ab", time.Second)
	expect(assignmentGrace, "b", 0)
	expect(time.Hour, "b", 0)
}

// A stack of which nothing is known keeps what it has, unless it is another instance's and has run. What a stack that is gone
// installed stays until the assignment has had time to follow. A removal that is held keeps all.
func TestUnresolvedStacks(t *testing.T) {
	began, there, held := time.Unix(1000, 0), &addonsv1.AddonStack{}, &addonsv1.HeldRemoval{}
	for name, tc := range map[string]struct {
		stack assignedStack
		after time.Duration
		want  decide.StackState
	}{
		"it has no valid revision yet":            {assignedStack{written: there}, assignmentGrace, decide.Undecided},
		"its revision can't be found":             {assignedStack{written: there, StackRevision: addonsv1.StackRevision{Revision: "a-1"}}, assignmentGrace, decide.Undecided},
		"another instance's, that has yet to run": {assignedStack{}, assignmentGrace, decide.Unseen},
		"gone, at first":                          {assignedStack{StackRevision: addonsv1.StackRevision{Revision: "a-1"}}, 0, decide.JustGone},
		"gone, for all":                           {assignedStack{deleted: true, StackRevision: addonsv1.StackRevision{Revision: "a-1"}}, assignmentGrace, decide.JustGone},
		"gone, and never taken out":               {assignedStack{deleted: true, StackRevision: addonsv1.StackRevision{Revision: "a-1"}}, deletionGrace, decide.Foreign},
		"gone, or another instance's":             {assignedStack{StackRevision: addonsv1.StackRevision{Revision: "a-1"}}, assignmentGrace, decide.Foreign},
		"gone, and held":                          {assignedStack{StackRevision: addonsv1.StackRevision{Revision: "a-1", HeldRemoval: held}}, assignmentGrace, decide.Held},
	} {
		tc.stack.Name = "a"
		s := resolveStacks([]assignedStack{tc.stack}, member.OfCluster(&clusterv1.Cluster{}), map[string]time.Time{"a": began}, began.Add(tc.after))
		if got := s.unresolved["a"]; got.state != tc.want || got.why == "" || len(s.heldRemovals) > 0 != (tc.want == decide.Held) {
			t.Errorf("%s: %+v, held %v", name, got, s.heldRemovals)
		}
	}
}

// A stack that this instance doesn't see may be there for another one. The API server is asked once the assignment should have
// followed.
func TestStackThatIsThereForNobody(t *testing.T) {
	there := &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "theirs"}}
	for name, want := range map[string]bool{"gone": true, "theirs": false} {
		now := time.Now()
		r := stackReader{namespace: "team", outdatedSince: map[string]time.Time{name: now.Add(time.Second - assignmentGrace)}, now: now}
		if deleted, err := r.isDeleted(t.Context(), name); deleted || err != nil { // it would panic if it asked
			t.Errorf("%s is gone after a moment: %v", name, err)
		}
		r.direct, r.now = fake.NewClientBuilder().WithScheme(hubScheme(t)).WithObjects(there).Build(), now.Add(time.Second)
		if deleted, err := r.isDeleted(t.Context(), name); deleted != want || err != nil {
			t.Errorf("%s is gone: %t, %v", name, deleted, err)
		}
	}
}

// A panic is one add-on's failure: the request has nothing to act with, and continues with the next.
func TestPanicIsOneAddonsFailure(t *testing.T) {
	q := &clusterRun{ca: &addonsv1.ClusterAddon{}, workload: workload.Cluster{Name: "team/prod"}, proofs: &releases.Proofs{}, Reconciler: &Reconciler{}}
	q.wanted = []wanted.Addon{addons.Wanted("a", "web"), addons.Wanted("a", "db")}
	all, _ := delivery{q}.ensureAll(t.Context())
	if len(all.statuses) != 2 || all.retryAfter != retry.Panic {
		t.Errorf("%+v, again in %s", all.statuses, all.retryAfter)
	}
	for _, s := range all.statuses {
		if s.Phase != addonsv1.AddonFailed || s.Reason != deliver.ReasonInternalError {
			t.Errorf("%+v", s)
		}
	}
}

// While an assignment is outdated, its add-ons are what they were: the request has nothing
// to act with, and would panic.
func TestAddonsOfAnOutdatedAssignment(t *testing.T) {
	ca := &addonsv1.ClusterAddon{}
	was := addonsv1.AddonStatus{Name: "web", Namespace: "default", Stack: "a", Phase: addonsv1.AddonReady, Version: "1.2.3"}
	ca.Status.Addons = []addonsv1.AddonStatus{was}
	outdated, added := addons.Wanted("a", "web"), addons.Wanted("a", "new")
	outdated.Outdated, added.Outdated = true, true
	q := &clusterRun{proofs: &releases.Proofs{}, ca: ca, Reconciler: &Reconciler{}, stacks: stacks{wanted: []wanted.Addon{outdated, added}}}
	all, _ := delivery{q}.ensureAll(t.Context())
	want := []addonsv1.AddonStatus{was, {Name: "new", Namespace: "default", Stack: "a", Phase: addonsv1.AddonPending}}
	if diff := cmp.Diff(want, all.statuses); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A stack that is deleted goes with its revision, in any order, before it is taken out of the assignment. Nobody is told
// then that it can't be read, unless it stays so.
func TestStackThatHasJustGoneIsNoQuestion(t *testing.T) {
	now, cluster := time.Unix(1000, 0), member.OfCluster(&clusterv1.Cluster{})
	spec := &addonsv1.AddonStackSpec{}
	of := addonsv1.StackRevision{Name: "platform", Revision: "platform-1"}
	record := addons.Installed("platform", "web")
	for name, tc := range map[string]struct {
		stack assignedStack
		told  bool // once it stays so
	}{
		"its revision is left": {assignedStack{StackRevision: of, spec: spec}, true},
		"its revision is gone": {assignedStack{StackRevision: of, written: &addonsv1.AddonStack{}}, true},
		"both are gone":        {assignedStack{StackRevision: of}, true},
		"it is gone for all":   {assignedStack{StackRevision: of, deleted: true}, false},
		"its removal is held": {assignedStack{
			StackRevision: addonsv1.StackRevision{Name: "platform", Revision: "platform-1", HeldRemoval: &addonsv1.HeldRemoval{}}, spec: spec,
		}, false},
	} {
		since := map[string]time.Time(nil)
		for _, after := range []time.Duration{0, time.Second, 2 * assignmentGrace} {
			was := releases.Status(record, addonsv1.AddonReady)
			q := &clusterRun{ca: &addonsv1.ClusterAddon{}, installed: map[deliver.Release]deliver.Summary{record.Release: record}, proofs: addons.Proofs(record)}
			q.Reconciler, q.ca.Status.Addons = &Reconciler{}, []addonsv1.AddonStatus{was}
			q.stacks = resolveStacks([]assignedStack{tc.stack}, cluster, since, now.Add(after))
			since = q.outdatedSince
			leaving, kept := removal{q}.unwanted()
			told := after > assignmentGrace && tc.told
			if len(leaving) > 0 || len(kept) != 1 || (kept[0].Reason == reasons.StackUndecided) != told {
				t.Errorf("%s, after %s: leaving %v, kept %+v", name, after, leaving, kept)
			}
		}
	}
}
