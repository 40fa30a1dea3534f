// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"fmt"
	"slices"
	"strings"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// maxScopeLength bounds Scope.String: it is the bound of status.scope.
const maxScopeLength = 256

// maxNamedNamespaces bounds how many namespaces Scope.Describe names.
const maxNamedNamespaces = 3

// ScopeOf returns the scope that a ProviderInstance claims.
func ScopeOf(spec *addonsv1.ProviderInstanceSpec) Scope {
	return Scope{Namespaces: spec.Namespaces, WatchFilter: spec.WatchFilter}
}

// Canonical returns the scope with each namespace once, in order.
func (s Scope) Canonical() Scope {
	return Scope{Namespaces: slices.Compact(slices.Sorted(slices.Values(s.Namespaces))), WatchFilter: s.WatchFilter}
}

// Equal says whether both scopes are of the same objects.
func (s Scope) Equal(other Scope) bool {
	a, b := s.Canonical(), other.Canonical()
	return a.WatchFilter == b.WatchFilter && slices.Equal(a.Namespaces, b.Namespaces)
}

// Overlaps says whether an object can be in both scopes. AddonStacks with the
// label of addonsv1.SharedWatchFilter don't count: they are meant for several
// instances.
func (s Scope) Overlaps(other Scope) bool {
	_, overlap := s.Intersection(other)
	return overlap
}

// Intersection returns the scope of the objects that are in both, and false if
// there can't be any.
func (s Scope) Intersection(other Scope) (Scope, bool) {
	a, b := s.Canonical(), other.Canonical()
	var shared Scope
	switch {
	case a.WatchFilter == "" || a.WatchFilter == b.WatchFilter:
		shared.WatchFilter = b.WatchFilter
	case b.WatchFilter == "":
		shared.WatchFilter = a.WatchFilter
	default:
		return Scope{}, false
	}
	switch {
	case len(a.Namespaces) == 0:
		shared.Namespaces = b.Namespaces
	case len(b.Namespaces) == 0:
		shared.Namespaces = a.Namespaces
	default:
		for _, namespace := range a.Namespaces {
			if _, found := slices.BinarySearch(b.Namespaces, namespace); found {
				shared.Namespaces = append(shared.Namespaces, namespace)
			}
		}
		if len(shared.Namespaces) == 0 { // would be all of them
			return Scope{}, false
		}
	}
	return shared, true
}

// String returns the namespaces in one word, as status.scope has them: "*",
// "team-a,team-b", or with the number of those that don't fit, as in "a,b,+12".
// The filter has a field of its own.
func (s Scope) String() string {
	namespaces := s.Canonical().Namespaces
	if len(namespaces) == 0 {
		return "*"
	}
	text := strings.Join(namespaces, ",")
	for named := len(namespaces) - 1; len(text) > maxScopeLength; named-- {
		text = fmt.Sprintf("%s,+%d", strings.Join(namespaces[:named], ","), len(namespaces)-named)
	}
	return text
}

// Describe returns the scope in words, for messages: "namespace team-a", or
// "objects with watch filter blue in namespaces a, b, c and 2 more".
func (s Scope) Describe() string {
	namespaces := s.Canonical().Namespaces
	var where string
	switch n := len(namespaces); {
	case n == 0:
		where = "all namespaces"
	case n == 1:
		where = "namespace " + namespaces[0]
	case n <= maxNamedNamespaces:
		where = "namespaces " + strings.Join(namespaces, ", ")
	default:
		where = fmt.Sprintf("namespaces %s and %d more", strings.Join(namespaces[:maxNamedNamespaces], ", "), n-maxNamedNamespaces)
	}
	if s.WatchFilter == "" {
		return where
	}
	return fmt.Sprintf("objects with watch filter %s in %s", s.WatchFilter, where)
}
