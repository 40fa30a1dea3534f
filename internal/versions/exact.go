// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"cmp"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// IsExact says whether a text is a whole semantic version, with a leading "v" or
// without. All else is a range, or nothing at all.
func IsExact(text string) bool {
	_, ok := read(text)
	return ok
}

// Newer says whether one exact version is newer than another. Of versions that
// differ in their build metadata alone, which semantic versioning doesn't order,
// that with the higher metadata is newer: publishers count there, too.
func Newer(one, than string) bool {
	a, ok := read(one)
	if !ok {
		return false
	}
	b, ok := read(than)
	return !ok || compare(a, b) > 0
}

// read a version. It isn't the library's lenient way, to which "1.2" is 1.2.0: a
// tag of that name moves.
func read(text string) (*semver.Version, bool) {
	version, err := semver.StrictNewVersion(strings.TrimPrefix(text, "v"))
	return version, err == nil
}

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
