// SPDX-License-Identifier: Apache-2.0

package removal_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/assignment/candidate"
	"github.com/cluster-chandler/chandler/controllers/assignment/removal"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/test/stacks"
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
			if got := tc.losing > removal.Allowance(tc.limit, tc.all); got != tc.want {
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
	in := func(name, revision string, addons ...string) candidate.Stack {
		c := candidate.Stack{Name: name, Revision: revision}
		for _, addon := range addons {
			c.Spec.Addons = append(c.Spec.Addons, addonsv1.Addon{Name: addon})
		}
		return c
	}
	for name, tc := range map[string]struct {
		wanted     []addonsv1.StackRevision
		candidates []candidate.Stack
		want       map[string][]string
	}{
		"the stack isn't wanted any more":          {nil, nil, map[string][]string{"a": {"default/web", "default/db"}}},
		"all stays":                                {[]addonsv1.StackRevision{{Name: "a", Revision: "a-1"}}, []candidate.Stack{in("a", "a-1", "web", "db")}, map[string][]string{}},
		"an add-on is dropped":                     {[]addonsv1.StackRevision{{Name: "a", Revision: "a-2"}}, []candidate.Stack{in("a", "a-2", "web")}, map[string][]string{"a": {"default/db"}}},
		"another stack has it":                     {[]addonsv1.StackRevision{{Name: "b", Revision: "b-1"}}, []candidate.Stack{in("b", "b-1", "web")}, map[string][]string{"a": {"default/db"}}},
		"the revision in force isn't the one here": {[]addonsv1.StackRevision{{Name: "a", Revision: "a-1"}}, []candidate.Stack{in("a", "a-2")}, map[string][]string{}},
		"an add-on moves": {[]addonsv1.StackRevision{{Name: "a", Revision: "a-2", MovedAddons: []string{"default/db"}}},
			[]candidate.Stack{in("a", "a-2", "web")}, map[string][]string{}},
		"another stack has it at a revision that isn't in force": {[]addonsv1.StackRevision{{Name: "b", Revision: "b-1"}},
			[]candidate.Stack{{Name: "b", Revision: "b-2", Revisions: []appsv1.ControllerRevision{stacks.Revision(t, "b-1", in("b", "", "web", "db").Spec)}}}, map[string][]string{}},
		"the stack that gave it away still has it at its revision": {
			[]addonsv1.StackRevision{{Name: "a", Revision: "a-2"}, {Name: "b", Revision: "b-1", MovedAddons: []string{"default/db"}}},
			[]candidate.Stack{in("a", "a-2", "web"), {Name: "b", Revision: "b-1", Spec: in("b", "", "db").Spec, Revisions: []appsv1.ControllerRevision{stacks.Revision(t, "b-1", in("b", "", "db").Spec)}}},
			map[string][]string{"a": {"default/db"}}},
		"the stack that gave it away had it at a revision that isn't in force": {
			[]addonsv1.StackRevision{{Name: "a", Revision: "a-2"}, {Name: "b", Revision: "b-1", MovedAddons: []string{"default/db"}}},
			[]candidate.Stack{in("a", "a-2", "web"), {Name: "b", Revision: "b-2", Revisions: []appsv1.ControllerRevision{stacks.Revision(t, "b-1", in("b", "", "db").Spec)}}},
			map[string][]string{"a": {"default/db"}}},
		"the stack that is to give it away has it yet": {
			[]addonsv1.StackRevision{{Name: "a", Revision: "a-2", MovedAddons: []string{"default/db"}}},
			[]candidate.Stack{in("a", "a-2", "web", "db")}, map[string][]string{}},
		"there is no revision": {[]addonsv1.StackRevision{{Name: "a"}}, []candidate.Stack{in("a", "")}, map[string][]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, (&removal.Plan{ClusterAddon: ca, Wanted: tc.wanted, Candidates: tc.candidates}).Losses()); diff != "" {
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
	a := candidate.Stack{Name: "a", Revision: "a-2", Spec: spec("web"), Revisions: []appsv1.ControllerRevision{stacks.Revision(t, "a-1", spec("web", "db"))}}
	ca := &addonsv1.ClusterAddon{}
	ca.Generation, ca.Spec.Stacks = 2, []addonsv1.StackRevision{{Name: "a", Revision: "a-1"}}
	for observed, want := range map[int64]map[string][]string{1: {"a": {"default/db"}}, 2: {}} {
		ca.Status.ObservedGeneration = observed
		p := &removal.Plan{ClusterAddon: ca, Wanted: []addonsv1.StackRevision{{Name: "a", Revision: "a-2"}}, Candidates: []candidate.Stack{a}}
		if diff := cmp.Diff(want, p.Losses()); diff != "" {
			t.Errorf("observed %d: -want +got:\n%s", observed, diff)
		}
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
			target := candidate.Stack{Name: "a", Revision: "a-2", Spec: addonsv1.AddonStackSpec{ClusterSelector: others, AllowedRemovals: tc.is}}
			target.Revisions = []appsv1.ControllerRevision{stacks.Revision(t, "a-2", target.Spec), stacks.Revision(t, "a-1", addonsv1.AddonStackSpec{ClusterSelector: tc.selected})}
			ca := &addonsv1.ClusterAddon{}
			ca.Spec.Stacks = []addonsv1.StackRevision{{Name: "a", Revision: tc.assigned}}
			for _, addon := range []string{"web", "db"} {
				ca.Status.Addons = append(ca.Status.Addons, addonsv1.AddonStatus{
					Stack: "a", Namespace: "default", Name: addon, Revision: 1, Objects: &addonsv1.ObjectCounts{},
				})
			}
			cluster := &member.Member{ClusterReference: addonsv1.ClusterReference{Kind: addonsv1.KindCluster}, Labels: map[string]string{"env": "test"}}
			p := &removal.Plan{Cluster: cluster, ClusterAddon: ca, Candidates: []candidate.Stack{target}, Wanted: tc.wanted}
			got := p.Unallowed(&target, p.Losses()["a"])
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
