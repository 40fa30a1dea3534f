// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
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
			if got := exceeds(tc.limit, tc.losing, tc.all); got != tc.want {
				t.Errorf("exceeds(%v, %d, %d) = %t", tc.limit, tc.losing, tc.all, got)
			}
		})
	}
}

func TestLosses(t *testing.T) {
	status := func(stack, name string, phase addonsv1.AddonPhase, revision int32) addonsv1.AddonStatus {
		return addonsv1.AddonStatus{Stack: stack, Namespace: "default", Name: name, Phase: phase, Revision: revision}
	}
	ca := &addonsv1.ClusterAddon{}
	ca.Status.Addons = []addonsv1.AddonStatus{
		status("a", "web", addonsv1.AddonReady, 3),
		status("a", "db", addonsv1.AddonFailed, 1),
		status("a", "waits", addonsv1.AddonPending, 0),
		status("a", "going", addonsv1.AddonRemoving, 1),
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
		"there is no revision":                     {[]addonsv1.StackRevision{{Name: "a"}}, []candidate{in("a", "")}, map[string][]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, losses(ca, tc.wanted, tc.candidates)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A confirmation is for one change: of one stack, by one cause, to one revision.
func TestConfirmationsDiffer(t *testing.T) {
	seen := map[string]string{}
	for name, held := range map[string]*addonsv1.HeldRemoval{
		"deleted":                 heldRemoval(addonsv1.StackRevision{Name: "a", Revision: "a-1"}, nil, nil, []string{"x"}),
		"deleted at another":      heldRemoval(addonsv1.StackRevision{Name: "a", Revision: "a-2"}, nil, nil, []string{"x"}),
		"another stack":           heldRemoval(addonsv1.StackRevision{Name: "b", Revision: "a-1"}, nil, nil, []string{"x"}),
		"not selected":            heldRemoval(addonsv1.StackRevision{Name: "a", Revision: "a-1"}, &candidate{name: "a", revision: "a-1"}, nil, []string{"x"}),
		"not selected by an edit": heldRemoval(addonsv1.StackRevision{Name: "a", Revision: "a-1"}, &candidate{name: "a", revision: "a-2"}, nil, []string{"x"}),
		"add-ons dropped":         heldRemoval(addonsv1.StackRevision{Name: "a", Revision: "a-1"}, &candidate{name: "a", revision: "a-2"}, []addonsv1.StackRevision{{Name: "a", Revision: "a-2"}}, []string{"x"}),
	} {
		if other, taken := seen[held.Confirmation]; taken {
			t.Errorf("%s and %s have one confirmation", name, other)
		}
		seen[held.Confirmation] = name
	}
	one := heldRemoval(addonsv1.StackRevision{Name: "a", Revision: "a-1"}, &candidate{name: "a", revision: "a-2"}, nil, []string{"x"})
	two := heldRemoval(addonsv1.StackRevision{Name: "a", Revision: "a-0"}, &candidate{name: "a", revision: "a-2"}, nil, []string{"y", "x"})
	if one.Confirmation != two.Confirmation {
		t.Error("clusters that one change concerns have several confirmations")
	}
}
