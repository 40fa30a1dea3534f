// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
)

// An object, as far as scopes tell objects apart.
type place struct{ namespace, label string }

// The small universe: all scopes over three namespaces and two filters. The
// fourth namespace, the third label and the missing one stand for all others.
var (
	universeNamespaces = []string{"a", "b", "c", "elsewhere"}
	universeLabels     = []string{"", "blue", "green", "other"}
)

func allScopes() []Scope {
	var scopes []Scope
	for subset := range 8 {
		var namespaces []string
		for i, name := range universeNamespaces[:3] {
			if subset&(1<<i) != 0 {
				namespaces = append(namespaces, name)
			}
		}
		for _, filter := range []string{"", "blue", "green"} {
			scopes = append(scopes, Scope{Namespaces: namespaces, WatchFilter: filter})
		}
	}
	return scopes
}

// model is the meaning of a scope, as flags and API server have it: the set of
// objects that it selects.
func model(s Scope) sets.Set[place] {
	set := sets.New[place]()
	for _, namespace := range universeNamespaces {
		for _, label := range universeLabels {
			if (len(s.Namespaces) == 0 || slices.Contains(s.Namespaces, namespace)) && (s.WatchFilter == "" || s.WatchFilter == label) {
				set.Insert(place{namespace, label})
			}
		}
	}
	return set
}

// Each pair of scopes behaves as the sets of objects do.
func TestScopesAreSetsOfObjects(t *testing.T) {
	for _, a := range allScopes() {
		for _, b := range allScopes() {
			both := model(a).Intersection(model(b))
			shared, overlap := a.Intersection(b)
			if want := len(both) > 0; overlap != want || a.Overlaps(b) != want {
				t.Errorf("%+v and %+v: Intersection() says %v, Overlaps() %v; want %v", a, b, overlap, a.Overlaps(b), want)
			}
			if overlap && !model(shared).Equal(both) {
				t.Errorf("%+v and %+v share %+v", a, b, shared)
			}
			if a.Equal(b) != model(a).Equal(model(b)) {
				t.Errorf("%+v and %+v: Equal() = %v", a, b, a.Equal(b))
			}
		}
	}
}

// Order and repetition of namespaces say nothing.
func FuzzScopesAreCanonical(f *testing.F) {
	f.Add("b,a,b", "a,c", "blue", "")
	f.Add("", "x", "", "")
	f.Fuzz(func(t *testing.T, first, second, firstFilter, secondFilter string) {
		split := func(text string) []string {
			return slices.DeleteFunc(strings.Split(text, ","), func(s string) bool { return s == "" })
		}
		a, b := Scope{split(first), firstFilter}, Scope{split(second), secondFilter}
		other := Scope{append(slices.Clone(a.Namespaces), a.Namespaces...), firstFilter}
		slices.Reverse(other.Namespaces)
		if !a.Equal(other) || a.String() != other.String() || a.Describe() != other.Describe() || a.LeaderElectionID() != other.LeaderElectionID() {
			t.Errorf("%q and %q differ", a, other)
		}
		if a.Overlaps(b) != other.Overlaps(b) || a.Overlaps(b) != b.Overlaps(a) {
			t.Errorf("%q and %q overlap %q differently", a, other, b)
		}
		if shared, ok := a.Intersection(b); ok && (!shared.Overlaps(a) || !shared.Overlaps(b)) {
			t.Errorf("%q and %q share %q, which isn't in both", a, b, shared)
		}
	})
}

func TestScopeInWords(t *testing.T) {
	many := func(n int) []string {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf("namespace-%03d-%s", i, strings.Repeat("x", 49)))
		}
		return names
	}
	for name, tc := range map[string]struct {
		scope           Scope
		short, describe string
	}{
		"everything":         {Scope{}, "*", "all namespaces"},
		"a filter":           {Scope{WatchFilter: "blue"}, "*", "objects with watch filter blue in all namespaces"},
		"a namespace":        {Scope{Namespaces: []string{"a"}}, "a", "namespace a"},
		"both":               {Scope{Namespaces: []string{"b", "a"}, WatchFilter: "blue"}, "a,b", "objects with watch filter blue in namespaces a, b"},
		"repeated":           {Scope{Namespaces: []string{"b", "a", "b"}}, "a,b", "namespaces a, b"},
		"several namespaces": {Scope{Namespaces: []string{"d", "c", "b", "a", "e"}}, "a,b,c,d,e", "namespaces a, b, c, and 2 more"},
		"256 long names": {
			Scope{Namespaces: many(256)},
			strings.Join(many(3), ",") + ",+253",
			"namespaces " + strings.Join(many(3), ", ") + ", and 253 more",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.scope.String(); got != tc.short || len(got) > maxScopeLength {
				t.Errorf("String() = %q (%d characters); want %q", got, len(got), tc.short)
			}
			if got := tc.scope.Describe(); got != tc.describe {
				t.Errorf("Describe() = %q; want %q", got, tc.describe)
			}
		})
	}
}
