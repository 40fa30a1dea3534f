// SPDX-License-Identifier: Apache-2.0

package versions

// MaxLength is the most characters that a version may have: a longer one has no room
// in a status. What is published under a longer name is left out.
const MaxLength = 128

// MaxPublished is how many versions of one artifact are taken into account.
const MaxPublished = 100_000

// Line is a line of versions, of which whoever follows it takes the newest one. What
// it decides depends on nothing but its arguments, and on no order that they come in.
type Line interface {
	// Allows says whether a version is one of the line.
	Allows(version string) bool
	// Newer says whether one version is newer than another. Any is newer than what is
	// no version at all.
	Newer(one, than string) bool
	// Newest returns the newest one of the line among those that are published.
	Newest(published []string) (newest string, found bool)
	// None says that the line has none of those that are published, and the way out.
	None(published []string) error
	// String says what is followed, as in "the range ~1.4".
	String() string
}

var _ Line = Range{}
