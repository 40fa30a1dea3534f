// SPDX-License-Identifier: Apache-2.0

package versions

import "cmp"

// MaxLength is the most characters that a version may have: a longer one has no room
// in a status. A version that is published under a longer name is left out.
const MaxLength = 128

// MaxPublished is how many versions of one artifact are taken into account.
const MaxPublished = 100_000

// Line is a line of versions. A follower of the line takes the newest one. The decisions of a line
// depend on nothing but its arguments, and not on their order.
type Line interface {
	// Allows reports whether a version is one of the line.
	Allows(version string) bool
	// Newer reports whether one version is newer than another. Any is newer than what is
	// no version at all.
	Newer(one, than string) bool
	// Newest returns the newest one of the line among those that are published. If the
	// line has none of them, the error says so, and the way out.
	Newest(published []string) (string, error)
	// String says what is followed, as in "the range ~1.4".
	String() string
}

// NewerBy reports whether one version is newer than another. Any is newer than what can't be read.
func NewerBy[V any](read func(string) (V, bool), compare func(a, b V) int, one, than string) bool {
	a, ok := read(one)
	if !ok {
		return false
	}
	b, ok := read(than)
	return !ok || compare(a, b) > 0
}

// NewestBy returns the newest of the published versions, "" if none of them can be read. If several
// are equally new, it is the first in the alphabet.
func NewestBy[V any](read func(string) (V, bool), compare func(a, b V) int, published []string) string {
	newest := ""
	var best V
	for _, text := range published {
		if v, ok := read(text); ok && (newest == "" || cmp.Or(compare(v, best), cmp.Compare(newest, text)) > 0) {
			newest, best = text, v
		}
	}
	return newest
}
