// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/member"
)

func TestExceeds(t *testing.T) {
	limit := func(text string) *intstr.IntOrString {
		parsed := intstr.Parse(text)
		return &parsed
	}
	for name, tc := range map[string]struct {
		limit       *intstr.IntOrString
		losing, all int
		want        bool
	}{
		"one of one":                            {nil, 1, 1, false},
		"two of two":                            {nil, 2, 2, true},
		"one of three":                          {nil, 1, 3, false},
		"two of twenty are a tenth":             {nil, 2, 20, false},
		"three of twenty are more":              {nil, 3, 20, true},
		"ten of a hundred":                      {nil, 10, 100, false},
		"eleven of a hundred":                   {nil, 11, 100, true},
		"all of them, and nothing is held":      {limit("100%"), 50, 50, false},
		"a number":                              {limit("5"), 5, 7, false},
		"more than the number":                  {limit("5"), 6, 1000, true},
		"none may go, and one alone always may": {limit("0"), 1, 10, false},
		"none may go":                           {limit("0%"), 2, 1000, true},
		"a limit that can't be read":            {limit("much"), 2, 1000, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.losing > allowance(tc.limit, tc.all); got != tc.want {
				t.Errorf("%d of %d, limit %v: too many: %t", tc.losing, tc.all, tc.limit, got)
			}
		})
	}
}

func TestLosses(t *testing.T) {
	status := func(stack, name string, phase addonsv1.AddonPhase, revision int32) addonsv1.AddonStatus {
		return addonsv1.AddonStatus{Stack: stack, Namespace: "default", Name: name, Phase: phase, Revision: revision, Objects: &addonsv1.ObjectCounts{Total: 1}}
	}
	ca := &addonsv1.ClusterAddon{}
	ca.Status.Addons = []addonsv1.AddonStatus{
		status("a", "web", addonsv1.AddonReady, 3),
		status("a", "db", addonsv1.AddonFailed, 1),
		status("a", "waits", addonsv1.AddonPending, 0),
		status("a", "going", addonsv1.AddonRemoving, 1),
		{Stack: "a", Namespace: "default", Name: "nothing", Phase: addonsv1.AddonFailed, Revision: 1}, // none of its objects was applied
	}
	in := func(name, revision string, addons ...string) candidate {
		c := candidate{name: name, revision: revision}
		for _, addon := range addons {
			c.spec.Addons = append(c.spec.Addons, addonsv1.Addon{Name: addon})
		}
		return c
	}
	for name, tc := range map[string]struct {
		wanted     []addonsv1.StackRevision
		candidates []candidate
		want       map[string][]string
	}{
		"the stack isn't wanted any more":          {nil, nil, map[string][]string{"a": {"default/web", "default/db"}}},
		"all stays":                                {[]addonsv1.StackRevision{{Name: "a", Revision: "a-1"}}, []candidate{in("a", "a-1", "web", "db")}, map[string][]string{}},
		"an add-on is dropped":                     {[]addonsv1.StackRevision{{Name: "a", Revision: "a-2"}}, []candidate{in("a", "a-2", "web")}, map[string][]string{"a": {"default/db"}}},
		"another stack has it":                     {[]addonsv1.StackRevision{{Name: "b", Revision: "b-1"}}, []candidate{in("b", "b-1", "web")}, map[string][]string{"a": {"default/db"}}},
		"the revision in force isn't the one here": {[]addonsv1.StackRevision{{Name: "a", Revision: "a-1"}}, []candidate{in("a", "a-2")}, map[string][]string{}},
		"an add-on moves": {[]addonsv1.StackRevision{{Name: "a", Revision: "a-2", MovedAddons: []string{"default/db"}}},
			[]candidate{in("a", "a-2", "web")}, map[string][]string{}},
		"another stack has it at a revision that isn't in force": {[]addonsv1.StackRevision{{Name: "b", Revision: "b-1"}},
			[]candidate{{name: "b", revision: "b-2", revisions: []appsv1.ControllerRevision{kept(t, "b-1", in("b", "", "web", "db").spec)}}}, map[string][]string{}},
		"the stack that gave it away still has it at its revision": {
			[]addonsv1.StackRevision{{Name: "a", Revision: "a-2"}, {Name: "b", Revision: "b-1", MovedAddons: []string{"default/db"}}},
			[]candidate{in("a", "a-2", "web"), {name: "b", revision: "b-1", spec: in("b", "", "db").spec, revisions: []appsv1.ControllerRevision{kept(t, "b-1", in("b", "", "db").spec)}}},
			map[string][]string{"a": {"default/db"}}},
		"the stack that gave it away had it at a revision that isn't in force": {
			[]addonsv1.StackRevision{{Name: "a", Revision: "a-2"}, {Name: "b", Revision: "b-1", MovedAddons: []string{"default/db"}}},
			[]candidate{in("a", "a-2", "web"), {name: "b", revision: "b-2", revisions: []appsv1.ControllerRevision{kept(t, "b-1", in("b", "", "db").spec)}}},
			map[string][]string{"a": {"default/db"}}},
		"the stack that is to give it away has it yet": {
			[]addonsv1.StackRevision{{Name: "a", Revision: "a-2", MovedAddons: []string{"default/db"}}},
			[]candidate{in("a", "a-2", "web", "db")}, map[string][]string{}},
		"there is no revision": {[]addonsv1.StackRevision{{Name: "a"}}, []candidate{in("a", "")}, map[string][]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, (&plan{ca: ca, wanted: tc.wanted, candidates: tc.candidates}).losses()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestLossesBehind sees that an add-on counts which a cluster may have by now, though its status doesn't say so yet.
func TestLossesBehind(t *testing.T) {
	spec := func(addons ...string) (spec addonsv1.AddonStackSpec) {
		for _, addon := range addons {
			spec.Addons = append(spec.Addons, addonsv1.Addon{Name: addon})
		}
		return spec
	}
	a := candidate{name: "a", revision: "a-2", spec: spec("web"), revisions: []appsv1.ControllerRevision{kept(t, "a-1", spec("web", "db"))}}
	ca := &addonsv1.ClusterAddon{}
	ca.Generation, ca.Spec.Stacks = 2, []addonsv1.StackRevision{{Name: "a", Revision: "a-1"}}
	for observed, want := range map[int64]map[string][]string{1: {"a": {"default/db"}}, 2: {}} {
		ca.Status.ObservedGeneration = observed
		p := &plan{ca: ca, wanted: []addonsv1.StackRevision{{Name: "a", Revision: "a-2"}}, candidates: []candidate{a}}
		if diff := cmp.Diff(want, p.losses()); diff != "" {
			t.Errorf("observed %d: -want +got:\n%s", observed, diff)
		}
		if got := has(ca, "a"); got != (observed == 1) {
			t.Errorf("observed %d: it has add-ons of the stack: %t", observed, got)
		}
	}
}

// A confirmation is for one change: of one stack, by one cause, to one revision.
func TestChangesDiffer(t *testing.T) {
	a, b := client.ObjectKey{Namespace: "ns", Name: "a"}, client.ObjectKey{Namespace: "ns", Name: "b"}
	at := func(revision string) *candidate { return &candidate{name: "a", revision: revision} }
	seen := map[heldChange]string{}
	for name, tc := range map[string]struct {
		key      client.ObjectKey
		assigned string
		target   *candidate
		wanted   []addonsv1.StackRevision
		cause    addonsv1.RemovalCause
	}{
		"deleted":                 {a, "a-1", nil, nil, addonsv1.RemovalStackDeleted},
		"deleted at another":      {a, "a-2", nil, nil, addonsv1.RemovalStackDeleted},
		"another stack":           {b, "a-1", nil, nil, addonsv1.RemovalStackDeleted},
		"not selected":            {a, "a-1", at("a-1"), nil, addonsv1.RemovalNotSelected},
		"not selected by an edit": {a, "a-1", at("a-2"), nil, addonsv1.RemovalNotSelected},
		"add-ons dropped":         {a, "a-1", at("a-2"), []addonsv1.StackRevision{{Name: "a", Revision: "a-2"}}, addonsv1.RemovalAddonsDropped},
	} {
		change, cause := changeOf(tc.key, tc.assigned, tc.target, tc.wanted)
		if other, taken := seen[change]; taken || cause != tc.cause {
			t.Errorf("%s is %s, and as %q", name, cause, other)
		}
		seen[change] = name
	}
	first, _ := changeOf(a, "a-1", at("a-2"), nil)
	if other, _ := changeOf(a, "a-0", at("a-2"), nil); first != other {
		t.Error("clusters that one change concerns have several confirmations")
	}
}

func TestConfirmationsAreShared(t *testing.T) {
	change, other := heldChange{"ns", "0123abcd"}, heldChange{"ns", "0123abce"}
	held := func(confirmation string) []addonsv1.ClusterAddon {
		ca := addonsv1.ClusterAddon{}
		ca.Spec.Stacks = []addonsv1.StackRevision{{Name: "b"}, {Name: "a", HeldRemoval: &addonsv1.HeldRemoval{Confirmation: confirmation}}}
		return []addonsv1.ClusterAddon{{}, ca}
	}
	all := confirmations{known: cache.NewExpiring()}
	first := all.of(change, nil)
	if all.of(change, nil) != first || !isOf(first, change) || isOf(first, other) {
		t.Errorf("a second cluster has another one than %s", first)
	}
	if all.of(other, held(first)) == first {
		t.Error("another change has the same")
	}
	all.spend(change)
	if all.of(change, nil) == first {
		t.Error("one that was given is given out once more")
	}
	if restarted := (&confirmations{known: cache.NewExpiring()}); restarted.of(change, held(first)) != first {
		t.Error("after a restart it is another one")
	}
}

func TestAllowedRemovals(t *testing.T) {
	leaving := &addonsv1.AllowedRemovals{ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "test"}}}
	elsewhere := &addonsv1.AllowedRemovals{ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}}
	web := &addonsv1.AllowedRemovals{Addons: []string{"web", "other"}}
	stays := []addonsv1.StackRevision{{Name: "a", Revision: "a-2"}}
	everyone, others := &metav1.LabelSelector{}, &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}
	for name, tc := range map[string]struct {
		selected *metav1.LabelSelector
		is       *addonsv1.AllowedRemovals
		assigned string
		wanted   []addonsv1.StackRevision
		want     []string
	}{
		"nothing is allowed":                {everyone, nil, "a-1", stays, []string{"default/db", "default/web"}},
		"an add-on is":                      {everyone, web, "a-1", stays, []string{"default/db"}},
		"it still is once that is assigned": {everyone, web, "a-2", stays, []string{"default/db"}},
		"an add-on, and all go":             {everyone, web, "a-1", nil, []string{"default/db", "default/web"}},
		"the cluster may leave":             {everyone, leaving, "a-1", nil, nil},
		"others may leave":                  {everyone, elsewhere, "a-1", nil, []string{"default/db", "default/web"}},
		"it was relabelled before the edit": {others, leaving, "a-1", nil, []string{"default/db", "default/web"}},
		"the cluster was relabelled":        {everyone, leaving, "a-2", nil, []string{"default/db", "default/web"}},
		"the assigned revision is lost":     {everyone, leaving, "a-0", nil, []string{"default/db", "default/web"}},
		"it may leave, and stays":           {everyone, leaving, "a-1", stays, []string{"default/db", "default/web"}},
	} {
		t.Run(name, func(t *testing.T) {
			target := candidate{name: "a", revision: "a-2", spec: addonsv1.AddonStackSpec{ClusterSelector: others, AllowedRemovals: tc.is}}
			target.revisions = []appsv1.ControllerRevision{kept(t, "a-2", target.spec), kept(t, "a-1", selecting(tc.selected))}
			ca := &addonsv1.ClusterAddon{}
			ca.Spec.Stacks = []addonsv1.StackRevision{{Name: "a", Revision: tc.assigned}}
			for _, addon := range []string{"web", "db"} {
				ca.Status.Addons = append(ca.Status.Addons, addonsv1.AddonStatus{
					Stack: "a", Namespace: "default", Name: addon, Revision: 1, Objects: &addonsv1.ObjectCounts{},
				})
			}
			cluster := &member.Member{ClusterReference: addonsv1.ClusterReference{Kind: addonsv1.KindCluster}, Labels: map[string]string{"env": "test"}}
			p := &plan{cluster: cluster, ca: ca, candidates: []candidate{target}, wanted: tc.wanted}
			got := p.unallowed(&target, p.losses()["a"])
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
