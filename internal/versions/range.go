// SPDX-License-Identifier: Apache-2.0

// Package versions tells exact versions from ranges, and picks the newest version
// that a range allows. Both are read as Helm reads them.
package versions

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
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

// ErrNoRange says that a text is neither an exact version nor a range.
var ErrNoRange = errors.New(`it is neither an exact version, as in 1.17.4, nor a range, as in 1.17.x, ~1.17.2, ^1.2 or ">=1.2 <2"`)

// operators are those of ranges; no tag has any of them.
const operators = "*<>=!~^|, "

// wildcard is a range that has an x for a number, and would be a good tag but for that.
var wildcard = regexp.MustCompile(`^v?([0-9]+[.]){0,2}[xX]([.][xX]){0,2}$`)

// IsRange reports whether a text is meant as a range where it could be a tag as well.
// A range has an operator, or an x in the place of a number. "1.17" is a tag.
func IsRange(text string) bool {
	return strings.ContainsAny(text, operators) || wildcard.MatchString(text)
}

// Range of versions that may be taken. It is a [Line].
type Range struct {
	text        string
	constraints *semver.Constraints
}

// ParseRange reads a range.
func ParseRange(text string) (Line, error) {
	constraints, err := semver.NewConstraint(text)
	if err != nil {
		return nil, ErrNoRange // the library's error quotes parts, and names no way out
	}
	return Range{text, constraints}, nil
}

// String returns "the range" with its text.
func (r Range) String() string { return "the range " + r.text }

// Allows reports whether an exact version is in the range. Pre-releases are only
// in a range that names one itself, as in ">=1.2.0-0".
func (r Range) Allows(version string) bool {
	_, ok := r.read(version)
	return ok
}

// Newer reports whether one exact version is newer than another.
func (Range) Newer(one, than string) bool { return NewerBy(read, compare, one, than) }

// Newest returns the newest of the published versions that the range allows. A text that is no
// version, as are other tags of a registry, is left out. The result is the same in whatever order
// they come: of "v1.0.0" and "1.0.0" it is the latter. If there is none, the error names the newest
// of all versions.
func (r Range) Newest(published []string) (string, error) {
	if newest := NewestBy(r.read, compare, published); newest != "" {
		return newest, nil
	}
	if newest := NewestBy(read, compare, published); newest != "" {
		return "", fmt.Errorf("it has no version that %q allows, the newest is %q; publish one, or correct version", r.text, newest)
	}
	return "", errors.New("it has no version at all that is a semantic one; publish one, or correct url")
}

// read reads an exact version that is in the range.
func (r Range) read(text string) (*semver.Version, bool) {
	v, ok := read(text)
	return v, ok && r.constraints.Check(v)
}
