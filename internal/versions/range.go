// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"errors"

	"github.com/Masterminds/semver/v3"
)

// ErrNoRange says that a text is neither an exact version nor a range.
var ErrNoRange = errors.New(`it is neither an exact version, as in 1.17.4, nor a range, as in 1.17.x, ~1.17.2, ^1.2 or ">=1.2 <2"`)

// Range of versions that may be taken.
type Range struct {
	constraints *semver.Constraints
}

// ParseRange reads a range.
func ParseRange(text string) (Range, error) {
	constraints, err := semver.NewConstraint(text)
	if err != nil {
		return Range{}, ErrNoRange // the library's error quotes parts, and names no way out
	}
	return Range{constraints}, nil
}

// Allows says whether an exact version is in the range. Pre-releases are only in a
// range that names one itself, as in ">=1.2.0-0".
func (r Range) Allows(version string) bool {
	v, ok := read(version)
	return ok && r.constraints.Check(v)
}

// Newest returns the newest of the published versions that the range allows. What
// is no version, as are other tags of a registry, is left out. It is the same in
// whatever order they come: of "v1.0.0" and "1.0.0" it is the latter.
func (r Range) Newest(published []string) (newest string, found bool) {
	var best *semver.Version
	for _, text := range published {
		v, ok := read(text)
		if !ok || !r.constraints.Check(v) {
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
