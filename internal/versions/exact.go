// SPDX-License-Identifier: Apache-2.0

// Package versions tells exact versions from ranges, and picks the newest version
// that a range allows. Both are read as Helm reads them.
package versions

import (
	"cmp"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// IsExact reports whether a text is a whole semantic version, with a leading "v" or
// without. All else is a range, or nothing at all.
func IsExact(text string) bool {
	_, ok := read(text)
	return ok
}

// read a version. It isn't the library's lenient way, to which "1.2" is 1.2.0: a
// tag of that name moves.
func read(text string) (*semver.Version, bool) {
	version, err := semver.StrictNewVersion(strings.TrimPrefix(text, "v"))
	return version, err == nil && len(text) <= MaxLength
}

// compare orders versions. Semantic versioning doesn't order versions that differ only in their
// build metadata. The version with the higher metadata is newer then: publishers count there, too.
func compare(a, b *semver.Version) int {
	return cmp.Or(a.Compare(b), compareMetadata(a.Metadata(), b.Metadata()))
}

// compareMetadata compares as the identifiers of pre-releases are compared, numbers
// as numbers; none is the lowest.
func compareMetadata(a, b string) int {
	if a == "" || b == "" {
		return cmp.Compare(a, b)
	}
	return cmp.Or(semver.New(0, 0, 0, a, "").Compare(semver.New(0, 0, 0, b, "")), cmp.Compare(a, b))
}
