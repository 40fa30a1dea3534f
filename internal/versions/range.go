// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"
)

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
func ParseRange(text string) (Range, error) {
	constraints, err := semver.NewConstraint(text)
	if err != nil {
		return Range{}, ErrNoRange // the library's error quotes parts, and names no way out
	}
	return Range{text, constraints}, nil
}

// String returns "the range" with its text.
func (r Range) String() string { return "the range " + r.text }

// Allows reports whether an exact version is in the range. Pre-releases are only
// in a range that names one itself, as in ">=1.2.0-0".
func (r Range) Allows(version string) bool {
	v, ok := read(version)
	return ok && len(version) <= MaxLength && r.constraints.Check(v)
}

// Newer is [Newer].
func (Range) Newer(one, than string) bool { return Newer(one, than) }

// Newest returns the newest of the published versions that the range allows. What
// is no version, as are other tags of a registry, is left out. It is the same in
// whatever order they come: of "v1.0.0" and "1.0.0" it is the latter.
func (r Range) Newest(published []string) (newest string, found bool) {
	return newestOf(published, r.constraints.Check)
}

// None returns an error that names the newest of all versions.
func (r Range) None(published []string) error {
	if newest, found := newestOf(published, func(*semver.Version) bool { return true }); found {
		return fmt.Errorf("it has no version that %q allows, the newest is %q; publish one, or correct version", r.text, newest)
	}
	return errors.New("it has no version at all that is a semantic one; publish one, or correct url")
}

func newestOf(published []string, allows func(*semver.Version) bool) (newest string, found bool) {
	var best *semver.Version
	for _, text := range published {
		v, ok := read(text)
		if !ok || len(text) > MaxLength || !allows(v) {
			continue
		}
		if best != nil {
			if c := compare(v, best); c < 0 || c == 0 && text >= newest {
				continue
			}
		}
		best, newest = v, text
	}
	return newest, best != nil
}
