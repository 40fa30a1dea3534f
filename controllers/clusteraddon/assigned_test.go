// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
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
		"its former class":                {spec: addonsv1.AddonStackSpec{ClassNames: []string{"v1"}}, want: true},
		"its labels":                      {spec: addonsv1.AddonStackSpec{ClusterSelector: &metav1.LabelSelector{MatchLabels: cluster.Labels}}},
		"its labels, not its class":       {spec: addonsv1.AddonStackSpec{ClusterSelector: &metav1.LabelSelector{}, ClassNames: []string{"v1"}}, want: true},
		"a selector that nobody can read": {spec: addonsv1.AddonStackSpec{ClusterSelector: broken}},
	} {
		if got := deselects(&tc.spec, cluster); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestLagsBeginAnew(t *testing.T) {
	l, one, now := newLags(), client.ObjectKey{Name: "one"}, time.Unix(1000, 0)
	l.update(one, []string{"a"}, now)
	got := l.update(one, []string{"a", "b"}, now.Add(time.Second))
	if diff := cmp.Diff(map[string]time.Time{"a": now, "b": now.Add(time.Second)}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	l.update(one, []string{"b"}, now.Add(2*time.Second))
	if got := l.update(one, []string{"a"}, now.Add(3*time.Second)); !got["a"].Equal(now.Add(3 * time.Second)) {
		t.Errorf("a is behind since %s, though it wasn't in between", got["a"])
	}
	if l.forget(one); len(l.since) != 0 {
		t.Errorf("left in memory: %v", l.since)
	}
}

// An assignment that doesn't follow is given some time, and then told. Nothing of it is
// wanted then, and its stack is undecided: so what is installed stays.
func TestAssignmentsThatDoNotFollow(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Unix(1000, 0))
	r, ca, cluster := &Reconciler{Clock: clock, lags: newLags()}, &addonsv1.ClusterAddon{}, &clusterv1.Cluster{}
	ca.Namespace, ca.Name, cluster.Name = "team", "prod", "prod"
	expect := func(after time.Duration, wantStacks string, wantAgain time.Duration) {
		t.Helper()
		clock.SetTime(time.Unix(1000, 0).Add(after))
		p := &pass{Reconciler: r, ca: ca, cluster: cluster, undecided: map[string]undecided{}}
		var stacks string
		for _, a := range p.withoutLate([]assigned{{stack: "a", behind: true}, {stack: "b"}}) {
			stacks += a.stack
		}
		_, undecided := p.undecided["a"]
		if stacks != wantStacks || undecided == (wantStacks == "ab") || len(p.undecided) > 1 || p.retryAfter != wantAgain {
			t.Errorf("after %s: wanted are %s, undecided %v, again in %s; want %s and %s", after, stacks, p.undecided, p.retryAfter, wantStacks, wantAgain)
		}
	}
	expect(0, "ab", lateness)
	expect(lateness-time.Second, "ab", time.Second)
	expect(lateness, "b", 0)
	expect(time.Hour, "b", 0)
}

// A panic is one add-on's failure: the pass has nothing to act with, and goes on with the next.
func TestPanicIsOneAddonsFailure(t *testing.T) {
	p := &pass{ca: &addonsv1.ClusterAddon{}, workload: &workload{name: "team/prod"}, Reconciler: &Reconciler{}}
	p.ensureAll(t.Context(), []addon{wantedAddon("a", "web"), wantedAddon("a", "db")})
	if len(p.statuses) != 2 || p.retryAfter != panicRetry {
		t.Errorf("%+v, again in %s", p.statuses, p.retryAfter)
	}
	for _, s := range p.statuses {
		if s.Phase != addonsv1.AddonFailed || s.Reason != deliver.ReasonInternalError {
			t.Errorf("%+v", s)
		}
	}
}

// While an assignment is behind, its add-ons are what they were: the pass has nothing to
// act with, and would panic.
func TestAddonsOfAnAssignmentThatIsBehind(t *testing.T) {
	ca := &addonsv1.ClusterAddon{}
	was := addonsv1.AddonStatus{Name: "web", Namespace: "default", Stack: "a", Phase: addonsv1.AddonReady, Version: "1.2.3"}
	ca.Status.Addons = []addonsv1.AddonStatus{was}
	behind, added := wantedAddon("a", "web"), wantedAddon("a", "new")
	behind.behind, added.behind = true, true
	p := &pass{ca: ca}
	p.ensureAll(t.Context(), []addon{behind, added})
	want := []addonsv1.AddonStatus{was, {Name: "new", Namespace: "default", Stack: "a", Phase: addonsv1.AddonPending}}
	if diff := cmp.Diff(want, p.statuses); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
