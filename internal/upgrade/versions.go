// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// compare orders two versions of Kubernetes. What is no version comes first.
func compare(a, b string) int {
	left, err := semver.NewVersion(a)
	right, other := semver.NewVersion(b)
	switch {
	case err != nil && other != nil:
		return cmp.Compare(a, b)
	case err != nil:
		return -1
	case other != nil:
		return 1
	}
	return cmp.Or(left.Compare(right), cmp.Compare(left.Metadata(), right.Metadata()))
}

// hasMinor reports whether a version is of the same minor version as another, or of a later one.
func hasMinor(version, least string) bool {
	v, err := semver.NewVersion(version)
	w, other := semver.NewVersion(least)
	if err != nil || other != nil {
		return true // nobody can tell
	}
	return cmp.Or(cmp.Compare(v.Major(), w.Major()), cmp.Compare(v.Minor(), w.Minor())) >= 0
}

// SameMinor reports whether two versions have the same major and minor number.
func SameMinor(a, b string) bool { return hasMinor(a, b) && hasMinor(b, a) }

// isOf reports whether a provider may mean a version of Cluster API by its own one, as v1.34.2-eks-1
// or v1.34 for v1.34.2.
func isOf(reported, version string) bool {
	v, err := semver.NewVersion(reported)
	w, other := semver.NewVersion(version)
	switch {
	case err != nil || other != nil:
		return false
	case strings.Count(reported, ".") < 2:
		return v.Major() == w.Major() && v.Minor() == w.Minor()
	}
	bare := w.Prerelease() == "" && w.Metadata() == ""
	return v.Major() == w.Major() && v.Minor() == w.Minor() && v.Patch() == w.Patch() &&
		(bare || v.Prerelease() == w.Prerelease() && v.Metadata() == w.Metadata())
}

// minors returns the first patch of each minor version between two versions, and the latter.
func minors(from, to string) []string {
	begin, err := semver.NewVersion(from)
	end, other := semver.NewVersion(to)
	if err != nil || other != nil || begin.Major() != end.Major() {
		return []string{to}
	}
	var all []string
	for minor := begin.Minor() + 1; minor < end.Minor(); minor++ {
		all = append(all, fmt.Sprintf("v%d.%d.0", end.Major(), minor))
	}
	return append(all, to)
}

// only returns the version that all are; "" if there are several, or none.
func only(versions []string) string {
	if len(versions) == 0 || slices.ContainsFunc(versions, func(v string) bool { return v != versions[0] }) {
		return ""
	}
	return versions[0]
}
